"""Query files of the literature: pickles of Query2Box and of KGReasoning (BetaE), read as plain data only.

KGReasoning: `valid-queries.pkl` {structure: {query}}, `valid-easy-answers.pkl` and `valid-hard-answers.pkl`
{query: {id}}; a query is (anchor, (relation, ...)), branches, or (sub-query, (relation, ...)), with (-1,) for a
union and -2 for a negation. Query2Box: `valid_ans_2c.pkl` (all answers) and `valid_ans_2c_hard.pkl`; a chain is in a
tuple of its own, the further hop of ic and uc is a third member, and only the file name tells a union. Names:
id2ent.pkl, id2rel.pkl, or ind2ent.pkl, ind2rel.pkl.
"""

import pickle
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from halfgraph.errors import InputError
from halfgraph.graph.files import open_input
from halfgraph.graph.folder import Graph
from halfgraph.graph.isolation import metered, run_isolated
from halfgraph.workload.columns import QuestionRecord
from halfgraph.workload.nested import INVERSE, FilePosition, GraphNames, shown

# What a pickle may name: containers, and what a defaultdict makes. Numbers and strings need no name.
ADMITTED: dict[str, type] = {"__builtin__.long": int, "collections.defaultdict": defaultdict}
for _module in ("builtins", "__builtin__"):
    ADMITTED |= {f"{_module}.{container.__name__}": container for container in (dict, frozenset, int, list, set)}
ENDINGS = (".pkl", ".pickle")
REASONING = re.compile(r"(?P<stem>(?P<split>train|valid|test)(-[\w-]+)?)-queries\.(pkl|pickle)(\.gz)?")
BOX = re.compile(
    r"(?P<split>train|valid|test)_ans_(?P<structure>[1-3]c|[23]i|ic|ci|2u|uc)(_hard)?\.(pkl|pickle)(\.gz)?"
)
EXPECTED = (
    "Expected valid-queries.pkl with valid-easy-answers.pkl and valid-hard-answers.pkl (KGReasoning), or "
    "valid_ans_2c.pkl with valid_ans_2c_hard.pkl (Query2Box)."
)
UNION, NEGATION = (-1,), -2


def is_pickled(source: Path) -> bool:
    """Whether a source is a folder, or a file that is a pickle by its name."""
    return source.is_dir() or any(ending in ENDINGS for ending in source.suffixes)


def read_pickles(source: Path, graph: Graph, split: str = "auto") -> Iterator[QuestionRecord]:
    """Read the query files of a folder, or one file and those beside it; only those of a split, unless it is "auto"."""
    folder = source if source.is_dir() else source.parent
    files = sorted(path.name for path in folder.iterdir()) if source.is_dir() else [source.name]
    reasoning = [match for name in files if (match := REASONING.fullmatch(name))]
    boxes = dict.fromkeys((match["split"], match["structure"]) for name in files if (match := BOX.fullmatch(name)))
    if not reasoning and not boxes:
        problem = "no query files here" if source.is_dir() else "not the name of a query file"
        raise InputError(problem, path=source, advice=EXPECTED)
    numbering = Numbering(folder, GraphNames(graph))
    for match in reasoning:
        if split in ("auto", match["split"]):
            yield from _read_reasoning(folder, match, numbering)
    for own_split, structure in boxes:
        if split in ("auto", own_split):
            yield from _read_box(folder, own_split, structure, numbering)


def _read_reasoning(folder: Path, match: re.Match[str], numbering: "Numbering") -> Iterator[QuestionRecord]:
    """Read one of KGReasoning's query files, with its answers."""
    position, stem = FilePosition(folder / match.string), match["stem"]
    queries = load_dictionary(position.path)
    if match["split"] == "train" and (answers := find_file(folder, f"{stem}-answers")):
        easy, hard = load_dictionary(answers), None
    else:
        easy = load_dictionary(need_file(folder, position, f"{stem}-easy-answers", f"{stem}-tp-answers"))
        hard = load_dictionary(need_file(folder, position, f"{stem}-hard-answers", f"{stem}-fn-answers"))
    for structure in sorted(queries, key=repr):
        for query in sorted(_members(queries[structure], position), key=repr):
            fields = {"easy": easy.get(query, ())} | ({} if hard is None else {"hard": hard.get(query, ())})
            yield QuestionRecord(position, query, fields, numbering, match["split"])


def _read_box(folder: Path, split: str, structure: str, numbering: "Numbering") -> Iterator[QuestionRecord]:
    """Read one structure of Query2Box's files; without a file of all answers the easy ones are left out."""
    stem = f"{split}_ans_{structure}"
    all_path, hard_path = find_file(folder, stem), find_file(folder, f"{stem}_hard")
    if split != "train" and hard_path is None:
        raise InputError(f"needs {stem}_hard.pkl beside it", path=all_path, advice=EXPECTED)
    everything, hard = (None if path is None else load_dictionary(path) for path in (all_path, hard_path))
    position = FilePosition(hard_path or all_path or folder)
    for query in sorted((everything or {}) if hard is None else hard, key=repr):
        hard_answers = () if hard is None else _members(hard.get(query, ()), position)
        fields = {} if hard is None else {"hard": hard_answers}
        if everything is not None:
            fields["easy"] = set(_members(everything.get(query, ()), position)) - set(hard_answers)
        yield QuestionRecord(position, to_reasoning(query, structure, position), fields, numbering, split)


def to_reasoning(query: Any, structure: str, position: FilePosition) -> Any:
    """Return a query of Query2Box in the form of KGReasoning."""
    hop: Any = ()
    if not isinstance(query, tuple) or not query:
        raise position.error(f"expected a query of {structure}, found {shown(query)}")
    if structure in ("ic", "uc"):
        *parts, last = query
        query, hop = tuple(parts), last if isinstance(last, tuple) else (last,)
    if "u" in structure:
        query = (*query, UNION)
    inner = query[0] if len(query) == 1 else query
    return (inner, hop) if hop else inner


class Numbering:
    """The ids behind a folder's numbers, through the names that its files give them."""

    leaf: ClassVar[type] = int
    union: ClassVar[Sequence[Any]] = UNION
    expected: ClassVar[str] = "a query of nested tuples of numbers"

    def __init__(self, folder: Path, names: GraphNames) -> None:
        self.folder, self.names = folder, names
        self._entities = _names_of(folder, "ent", lambda name: name in names.graph.entities)
        relations = _names_of(folder, "rel", lambda name: names.find_relation(relation_name(name, names)) is not None)
        self._relations = {number: relation_name(name, names) for number, name in relations.items()}

    def entity(self, leaf: Any, position: FilePosition) -> int:
        return self.names.entity(self._name(self._entities, "entity", leaf, position), position)

    def entities(self, leaves: Any, position: FilePosition) -> list[int]:
        """Return the ids of a set of entities, in the order of their numbers."""
        members = sorted(_members(leaves, position), key=lambda number: number if isinstance(number, int) else -1)
        return self.names.entities([self._name(self._entities, "entity", leaf, position) for leaf in members], position)

    def relation(self, leaf: Any, position: FilePosition) -> int:
        return self.names.relation(self._name(self._relations, "relation", leaf, position), position)

    def negates(self, leaf: Any) -> bool:
        return bool(leaf == NEGATION)

    def _name(self, names: Mapping[Any, str], what: str, number: Any, position: FilePosition) -> str:
        if not isinstance(number, int) or number not in names:
            problem = f"{what} {shown(number)} has no name in {self.folder}"
            raise position.error(problem, advice=f"Put the id2{what[:3]}.pkl that belongs to it beside it.")
        return names[number]


def _members(value: Any, position: FilePosition) -> Collection[Any]:
    if not isinstance(value, set | frozenset | list | tuple):
        raise position.error(f"expected a set of answers or queries, found {shown(value)}", advice=EXPECTED)
    return value


def relation_name(name: str, names: GraphNames) -> str:
    """Return a directed relation as the graph names it: +x and x are x, -x and x_reverse its inverse."""
    forward, inverse = (name, name.removeprefix("+")), (name.removeprefix("-"), name.removesuffix("_reverse"))
    spellings = [*((stem, "") for stem in forward), *((stem, INVERSE) for stem in inverse)]
    return next((stem + suffix for stem, suffix in spellings if stem in names.graph.relations), name)


def _names_of(folder: Path, what: str, is_known: Callable[[str], bool]) -> dict[int, str]:
    """Return the names by number; the numbers themselves if the graph was made of a table of numbers."""
    forward, back = (find_file(folder, f"id2{what}", f"ind2{what}"), find_file(folder, f"{what}2id", f"{what}2ind"))
    if forward is None and back is None:
        problem = f"no id2{what}.pkl here, which names the numbers in the queries"
        raise InputError(problem, path=folder, advice="Add the file that belongs to the queries.")
    table = load_dictionary(forward or back or folder)
    pairs = table.items() if forward else ((number, name) for name, number in table.items())
    names = {number: name for number, name in pairs if isinstance(number, int) and isinstance(name, str)}
    if not any(map(is_known, names.values())) and any(is_known(str(number)) for number in names):
        return {number: str(number) for number in names}
    return names


def find_file(folder: Path, *stems: str) -> Path | None:
    """Return the first pickle with one of these names, or None."""
    paths = (folder / f"{stem}{ending}{packed}" for stem in stems for ending in ENDINGS for packed in ("", ".gz"))
    return next((path for path in paths if path.exists()), None)


def need_file(folder: Path, position: FilePosition, *stems: str) -> Path:
    """Return the first pickle with one of these names; raise InputError if there is none."""
    path = find_file(folder, *stems)
    if path is None:
        raise position.error(f"needs {stems[0]}.pkl beside it", advice=EXPECTED)
    return path


class _PlainUnpickler(pickle.Unpickler):
    """Reads containers, numbers and strings, and refuses everything else before it is touched."""

    path: Path

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in ADMITTED:
            problem = f"holds {module}.{name}, and only plain containers, numbers and strings are read"
            advice = "A pickle can run any program: ask its author for plain data."
            raise InputError(problem, path=self.path, advice=advice)
        return ADMITTED[f"{module}.{name}"]


def load_dictionary(path: Path) -> dict[Any, Any]:
    """Load the dictionary in a pickle without running anything in it.

    It is loaded in another process first, which may die of it.
    """
    run_isolated(partial(_load, path))
    value = _load(path)
    if not isinstance(value, dict):
        raise InputError(f"expected a dictionary, found {type(value).__name__}", path=path, advice=EXPECTED)
    return value


def _load(path: Path) -> Any:
    with open_input(path) as source, metered(source, path, lambda: None, barren=None) as stream:
        reader = _PlainUnpickler(stream)
        reader.path = path
        try:
            return reader.load()
        except (InputError, MemoryError, RecursionError):
            raise
        except Exception as error:  # a broken pickle raises whatever its bytes happen to ask for
            raise InputError(f"cannot be read as a pickle: {error}", path=path, advice="Fetch it again.") from error
