"""Questions from elsewhere, gathered into columns as they are read: numbers only, so that many fit in memory."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfgraph.errors import QueryError
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import NAMED, Structure, match_structure, structure_name
from halfgraph.query.tree import check_negations
from halfgraph.workload.nested import Names, Place, form_of_lists, read_nested, shown
from halfgraph.workload.sampling import Questions

SETS = ("easy", "hard", "negatives", "hard_negatives")
SINGLES = ("negative", "hard_negative")
NEGATED = "with a negation that stands alone"
HELD_OUT = "held out"  # the split of questions whose file does not say whether they are for validation or test
_SHORT = {structure.short for structure in NAMED}


@dataclass(frozen=True)
class Found:
    """A question as it was found: where, an object with the fields of a JSON line, and its split if that is known."""

    place: Place
    record: Mapping[str, Any]
    split: str | None = None


@dataclass(frozen=True)
class Asked:
    """A question in ids."""

    structure: Structure
    anchors: Sequence[int]
    relations: Sequence[int]
    answer: int
    singles: Mapping[str, int]  # negative and hard negative; -1 where there is none
    sets: Mapping[str, list[int] | None]  # sorted; None where they are not given
    missing: int | None


@dataclass
class Noted:
    """Gives each name a number of its own in the order of reading, and notes the ids behind the numbers."""

    names: Names
    anchors: list[int] = field(default_factory=list)
    relations: list[int] = field(default_factory=list)

    def entity(self, name: object, place: Place) -> int:
        """The number of an anchor."""
        self.anchors.append(self.names.entity(name, place))
        return len(self.anchors) - 1

    def relation(self, name: object, place: Place) -> int:
        """The number of a relation."""
        self.relations.append(self.names.relation(name, place))
        return len(self.relations) - 1

    def negates(self, name: object) -> bool:
        """Whether a name among the relations of a path says that it is negated."""
        return self.names.negates(name)


# For each form of nested lists met so far: the structure, and where its anchors and relations stand in the lists.
Forms = dict[str, tuple[Structure, Sequence[int], Sequence[int]] | str]


def read_question(found: Found, names: Names, forms: Forms) -> Asked | str:
    """The question in ids, or the form of a query that is none of the named structures."""
    place, record = found.place, found.record
    form, noted = form_of_lists(record["query"]), Noted(names)
    try:
        query = read_nested(record["query"], noted, place)
        check_negations(query)
    except QueryError:
        return NEGATED
    if form not in forms:
        forms[form] = match_structure(query) or structure_name(query)
    known = forms[form]
    if isinstance(known, str):
        return known
    structure, anchors, relations = known
    stated = record.get("structure", structure.short)
    if stated in _SHORT and stated != structure.short:
        raise place.error(f'"structure" says {stated}, and the query is {structure.short}: {shown(record["query"])}')
    given = {name: _entities(record, name, names, place) for name in SETS}
    singles = {name: _entity(record, name, names, place) for name in SINGLES}
    answer = _answer(_entity(record, "answer", names, place), given, place)
    sets = {name: None if ids is None else sorted(set(ids)) for name, ids in given.items()}
    return Asked(
        structure,
        [noted.anchors[number] for number in anchors],
        [noted.relations[number] for number in relations],
        answer,
        singles,
        sets,
        _missing(record.get("missing"), place),
    )


def _entities(record: Mapping[str, Any], name: str, names: Names, place: Place) -> list[int] | None:
    value = record.get(name)
    return None if value is None else names.entities(value, place)


def _entity(record: Mapping[str, Any], name: str, names: Names, place: Place) -> int:
    value = record.get(name)
    return -1 if value is None else names.entity(value, place)


def _answer(answer: int, given: Mapping[str, list[int] | None], place: Place) -> int:
    """The answer of a question: as given, or the first hard one, or the first easy one."""
    easy, hard = given["easy"] or [], given["hard"] or []
    if both := set(easy) & set(hard):
        raise place.error(f"{len(both):,} answers are both easy and hard")
    if answer < 0:
        if not easy and not hard:
            raise place.error("the query has no answers", advice="Remove it, or give its easy and hard answers.")
        return (hard or easy)[0]
    if (given["easy"] is not None or given["hard"] is not None) and answer not in {*easy, *hard}:
        raise place.error('"answer" is neither among the easy nor among the hard answers')
    return answer


def _missing(value: Any, place: Place) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 0):
        raise place.error(f'"missing" should be how many triples are missing, found {shown(value)}')
    return value


@dataclass
class Gathered:
    """The questions of one structure, column by column."""

    structure: Structure
    numbers: dict[str, "array[int]"] = field(default_factory=dict)
    sizes: dict[str, "array[int]"] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)  # the columns that some question does not have
    lines: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, asked: Asked, line: int | None) -> None:
        """Nothing; a question is added."""
        self._extend("anchors", asked.anchors)
        self._extend("relations", asked.relations)
        self._extend("answers", [asked.answer])
        for name, entity in asked.singles.items():
            self._extend(name, [entity])
        for name, entities in {**asked.sets, "missing": None if asked.missing is None else [asked.missing]}.items():
            if entities is None:
                self.lacking.add(name)
            self._extend(name, entities or [])
            self.sizes.setdefault(name, array("i")).append(len(entities or []))
        if line is not None:
            self.lines.append(line)

    def _extend(self, name: str, values: Sequence[int]) -> None:
        self.numbers.setdefault(name, array("i")).extend(values)

    def questions(self) -> Questions:
        """The questions gathered; negatives are there if any question has some, other columns if all questions have."""
        count = len(self.numbers["answers"])
        columns: dict[str, Any] = {name: self._numbers(name) for name in ("answers", *SINGLES)}
        negatives = SETS[2:] if any(self.numbers[name] for name in SETS[2:]) else ()
        for name in SETS:
            if name in negatives or name not in self.lacking:
                offsets = np.append(0, np.cumsum(np.frombuffer(self.sizes[name], np.int32), dtype=np.int64))
                columns[name] = Ragged(self._numbers(name), offsets)
        if "missing" not in self.lacking:
            columns["missing"] = self._numbers("missing")
        anchors, relations = (self._numbers(name).reshape(count, -1) for name in ("anchors", "relations"))
        return Questions(self.structure, anchors, relations, **columns)

    def _numbers(self, name: str) -> Any:
        return np.frombuffer(self.numbers[name], np.int32) if self.numbers[name] else np.empty(0, np.int32)


def gather(
    items: Iterable[Found], names: Names, told: Callable[[int], None]
) -> tuple[dict[str, dict[str, Gathered]], Counter[str]]:
    """The questions by split and structure, and how many queries of other forms were set aside."""
    gathered: dict[str, dict[str, Gathered]] = {}
    aside: Counter[str] = Counter()
    forms: Forms = {}
    for number, found in enumerate(items, 1):
        asked = read_question(found, names, forms)
        if isinstance(asked, str):
            aside[asked] += 1
        else:
            split = found.split or ("train" if asked.sets["hard"] is None else HELD_OUT)
            rows = gathered.setdefault(split, {})
            rows.setdefault(asked.structure.name, Gathered(asked.structure)).add(asked, found.place.line)
        if number % 256 == 0:
            told(number)
    return gathered, aside
