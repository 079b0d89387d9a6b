"""The field's own query files: pickles of Query2Box and of KGReasoning (BetaE), read as plain data and nothing else.

KGReasoning: `valid-queries.pkl` {structure: {query}}, `valid-easy-answers.pkl` and `valid-hard-answers.pkl`
{query: {id}}, a query being (anchor, (relation, ...)), branches, or (sub-query, (relation, ...)), with (-1,) for a
union and -2 for a negation. Query2Box: `valid_ans_2c.pkl` (all answers) and `valid_ans_2c_hard.pkl`, a chain in a tuple
of its own, the further hop of ic and uc as a third member, unions told by the file's name only. Names: id2ent.pkl,
id2rel.pkl, or ind2ent.pkl, ind2rel.pkl.
"""

import pickle
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from halfgraph.errors import InputError
from halfgraph.graph.files import open_input
from halfgraph.graph.folder import Graph
from halfgraph.workload.gathered import Found
from halfgraph.workload.nested import INVERSE, NEGATION, UNION, Names, Place, shown

# What a pickle may name: containers, and what a defaultdict makes. Numbers and strings need no name.
ADMITTED: Mapping[str, type] = {
    **{
        f"{module}.{type_id.__name__}": type_id
        for module in ("builtins", "__builtin__")
        for type_id in (dict, frozenset, int, list, set)
    },
    "__builtin__.long": int,
    "collections.defaultdict": defaultdict,
}
ENDINGS = (".pkl", ".pickle")
REASONING = re.compile(r"(?P<stem>(?P<split>train|valid|test)(-[\w-]+)?)-queries\.(pkl|pickle)(\.gz)?")
BOX = re.compile(
    r"(?P<split>train|valid|test)_ans_(?P<structure>[1-3]c|[23]i|ic|ci|2u|uc)(_hard)?\.(pkl|pickle)(\.gz)?"
)
EXPECTED = (
    "Expected valid-queries.pkl with valid-easy-answers.pkl and valid-hard-answers.pkl (KGReasoning), or "
    "valid_ans_2c.pkl with valid_ans_2c_hard.pkl (Query2Box)."
)
UNION_NUMBER, NEGATION_NUMBER = -1, -2
DEEPEST = 8  # tuples within tuples


def is_pickled(source: Path) -> bool:
    """Whether a source is a folder, or a file that is a pickle by its name."""
    return source.is_dir() or any(ending in ENDINGS for ending in source.suffixes)


def read_pickles(source: Path, graph: Graph, split: str = "auto") -> Iterator[Found]:
    """The questions of a folder's query files, or of one file and those beside it; of one split, if it is given."""
    folder = source if source.is_dir() else source.parent
    files = sorted(path.name for path in folder.iterdir()) if source.is_dir() else [source.name]
    reasoning = [match for name in files if (match := REASONING.fullmatch(name))]
    boxes = {(match["split"], match["structure"]): match for name in files if (match := BOX.fullmatch(name))}
    if not reasoning and not boxes:
        problem = "no query files here" if source.is_dir() else "is no query file by its name"
        raise InputError(problem, path=source, advice=EXPECTED)
    numbering = Numbering(folder, Names(graph))
    for match in reasoning:
        if split in ("auto", match["split"]):
            yield from _reasoning(folder, match, numbering)
    for (own, structure), _ in boxes.items():
        if split in ("auto", own):
            yield from _box(folder, own, structure, numbering)


def _reasoning(folder: Path, match: re.Match[str], numbering: "Numbering") -> Iterator[Found]:
    """The questions of one of KGReasoning's files."""
    place = Place(folder / match.string)
    queries = load_dictionary(place.path)
    if match["split"] == "train" and (known := beside(folder, f"{match['stem']}-answers")):
        easy, hard = load_dictionary(known), None
    else:
        easy = load_dictionary(needed(folder, place, f"{match['stem']}-easy-answers", f"{match['stem']}-tp-answers"))
        hard = load_dictionary(needed(folder, place, f"{match['stem']}-hard-answers", f"{match['stem']}-fn-answers"))
    for structure in sorted(queries, key=repr):
        for query in sorted(_members(queries[structure], place), key=repr):
            answers = {"easy": numbering.entities(easy.get(query, ()), place)}
            answers |= {} if hard is None else {"hard": numbering.entities(hard.get(query, ()), place)}
            yield Found(place, {"query": nested(query, numbering, place), **answers}, match["split"])


def _box(folder: Path, split: str, structure: str, numbering: "Numbering") -> Iterator[Found]:
    """The questions of one structure in Query2Box's files; easy answers are left out where there is no file of all."""
    stem = f"{split}_ans_{structure}"
    every, hardest = beside(folder, stem), beside(folder, f"{stem}_hard")
    if split != "train" and hardest is None:
        raise InputError(f"needs {stem}_hard.pkl beside it", path=every, advice=EXPECTED)
    known, hard = (None if path is None else load_dictionary(path) for path in (every, hardest))
    place = Place(hardest or every or folder)
    for query in sorted((known or {}) if hard is None else hard, key=repr):
        lists = nested(modern(query, structure, place), numbering, place)
        needs = _members(hard.get(query, ()), place) if hard is not None else ()
        answers = {} if hard is None else {"hard": numbering.entities(needs, place)}
        if known is not None:
            answers["easy"] = numbering.entities(set(_members(known.get(query, ()), place)) - set(needs), place)
        yield Found(place, {"query": lists, **answers}, split)


def modern(query: Any, structure: str, place: Place) -> Any:
    """A query of Query2Box in the form of KGReasoning."""
    hop: Any = ()
    if not isinstance(query, tuple) or not query:
        raise place.error(f"expected a query of {structure}, found {shown(query)}")
    if structure in ("ic", "uc"):
        *parts, last = query
        query, hop = tuple(parts), last if isinstance(last, tuple) else (last,)
    if "u" in structure:
        query = (*query, (UNION_NUMBER,))
    inner = query[0] if len(query) == 1 else query
    return (inner, hop) if hop else inner


def nested(query: Any, numbering: "Numbering", place: Place, depth: int = 0) -> list[Any]:
    """A query of tuples of numbers as nested lists of names."""
    match query:
        case (int(anchor), tuple(relations)):
            return [numbering.entity(anchor, place), [numbering.relation(number, place) for number in relations]]
        case (tuple(source), tuple(relations)) if relations and all(isinstance(number, int) for number in relations):
            hops = [numbering.relation(number, place) for number in relations]
            return [nested(source, numbering, place, depth + 1), hops]
        case (tuple(), tuple(), *_) if depth < DEEPEST:
            return [UNION if part == (UNION_NUMBER,) else nested(part, numbering, place, depth + 1) for part in query]
    raise place.error(f"expected a query of nested tuples of numbers, found {shown(query)}", advice=EXPECTED)


class Numbering:
    """The names behind a folder's numbers, as the graph has them."""

    def __init__(self, folder: Path, names: Names) -> None:
        self.folder = folder
        self._entities = _named(folder, "ent", lambda name: name in names.graph.entities)
        relations = _named(folder, "rel", lambda name: names.find_relation(our_relation(name, names)) is not None)
        self._relations = {number: our_relation(name, names) for number, name in relations.items()}

    def entities(self, numbers: Any, place: Place) -> list[str]:
        """The names of some entities, in the order of their numbers."""
        return [self.entity(number, place) for number in sorted(_members(numbers, place), key=_number)]

    def entity(self, number: Any, place: Place) -> str:
        """The name of an entity."""
        return self._name(self._entities, "entity", number, place)

    def relation(self, number: Any, place: Place) -> str:
        """The name of a directed relation, or the mark of a negation."""
        return NEGATION if number == NEGATION_NUMBER else self._name(self._relations, "relation", number, place)

    def _name(self, names: Mapping[Any, str], what: str, number: Any, place: Place) -> str:
        if not isinstance(number, int) or number not in names:
            problem = f"{what} {shown(number)} is none of those named in {self.folder}"
            raise place.error(problem, advice=f"Put the id2{what[:3]}.pkl that belongs to it beside it.")
        return names[number]


def _number(value: Any) -> Any:
    """What to sort a member of a set by: whatever is no number comes first, to be refused."""
    return value if isinstance(value, int) else -1


def _members(value: Any, place: Place) -> Any:
    """A set or list, as it should be."""
    if not isinstance(value, set | frozenset | list | tuple):
        raise place.error(f"expected a set of answers or queries, found {shown(value)}", advice=EXPECTED)
    return value


def our_relation(name: str, names: Names) -> str:
    """A directed relation as the graph calls it: +x and x are x, -x and x_reverse its inverse."""
    ways = {
        name: "",
        name.removeprefix("+"): "",
        name.removeprefix("-"): INVERSE,
        name.removesuffix("_reverse"): INVERSE,
    }
    ways[name] = ""
    return next((plain + mark for plain, mark in ways.items() if plain in names.graph.relations), name)


def _named(folder: Path, what: str, is_known: Any) -> dict[int, str]:
    """The names by number; the numbers themselves where the graph was made of a table of numbers."""
    forward, back = (beside(folder, f"id2{what}", f"ind2{what}"), beside(folder, f"{what}2id", f"{what}2ind"))
    if forward is None and back is None:
        problem = f"no id2{what}.pkl here, which says what the numbers in the queries stand for"
        raise InputError(problem, path=folder, advice="Put the one that belongs to the queries there.")
    table = load_dictionary(forward or back or folder)
    pairs = table.items() if forward else ((number, name) for name, number in table.items())
    found = {number: name for number, name in pairs if isinstance(number, int) and isinstance(name, str)}
    if not any(map(is_known, found.values())) and any(is_known(str(number)) for number in found):
        return {number: str(number) for number in found}
    return found


def beside(folder: Path, *stems: str) -> Path | None:
    """The first file of some names, with any ending of a pickle, or None."""
    names = (folder / f"{stem}{ending}{packed}" for stem in stems for ending in ENDINGS for packed in ("", ".gz"))
    return next((path for path in names if path.exists()), None)


def needed(folder: Path, place: Place, *stems: str) -> Path:
    """The first file of some names, or an error where none is there."""
    path = beside(folder, *stems)
    if path is None:
        raise place.error(f"needs {stems[0]}.pkl beside it", advice=EXPECTED)
    return path


class _Plain(pickle.Unpickler):
    """Reads containers, numbers and strings; whatever else a pickle names is refused before it is touched."""

    path: Path

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in ADMITTED:
            problem = f"holds {module}.{name}, and only plain containers, numbers and strings are read"
            raise InputError(
                problem, path=self.path, advice="A pickle can run any program: have its maker write plain data."
            )
        return ADMITTED[f"{module}.{name}"]


def load_dictionary(path: Path) -> dict[Any, Any]:
    """The dictionary in a pickle; nothing in it is run."""
    with open_input(path) as stream:
        reader = _Plain(stream)
        reader.path = path
        try:
            value = reader.load()
        except InputError:
            raise
        except Exception as error:  # a broken pickle raises whatever its bytes happen to ask for
            raise InputError(
                f"cannot be read as a pickle: {error}", path=path, advice="Fetch the file again."
            ) from error
    if not isinstance(value, dict):
        raise InputError(f"expected a dictionary, found {type(value).__name__}", path=path, advice=EXPECTED)
    return value
