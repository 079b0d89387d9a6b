"""Imported questions, collected into columns as they are read: numbers only, so that many fit in memory."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfgraph.errors import QueryError
from halfgraph.query.exact import Ragged
from halfgraph.query.program import compile_query
from halfgraph.query.structures import NAMED, Structure, match_structure, structure_name
from halfgraph.query.tree import Anchor, Project, Query, children, is_negated, nodes
from halfgraph.workload.nested import FilePosition, Leaves, read_nested, shown
from halfgraph.workload.sampling import Questions

SETS = ("easy", "hard", "negatives", "hard_negatives")
SINGLES = ("negative", "hard_negative")
ONLY_NEGATED = "with a negation that stands alone"
HELD_OUT = "held out"  # the split of questions whose file does not say whether they are for validation or test
_SHORT_NAMES = {structure.short for structure in NAMED}


@dataclass(frozen=True)
class QuestionRecord:
    """A question as its file has it: nested lists, and fields with the names of our JSON lines."""

    position: FilePosition
    query: Any
    fields: Mapping[str, Any]
    leaves: Leaves
    split: str | None = None

    def entity(self, name: str) -> int:
        """Return the entity of a field, or -1 if the field is absent."""
        value = self.fields.get(name)
        return -1 if value is None else self.leaves.entity(value, self.position)

    def entities(self, name: str) -> list[int] | None:
        """Return the entities of a field, or None if the field is absent."""
        value = self.fields.get(name)
        return None if value is None else self.leaves.entities(value, self.position)

    def missing(self) -> int | None:
        value = self.fields.get("missing")
        if value is not None and (not isinstance(value, int) or value < 0):
            raise self.position.error(f'"missing" should be how many triples are missing, found {shown(value)}')
        return value

    def answer(self, easy: Sequence[int] | None, hard: Sequence[int] | None) -> int:
        """Return the answer: as given, or the first hard one, or the first easy one."""
        answer, both = self.entity("answer"), set(easy or ()) & set(hard or ())
        if both:
            raise self.position.error(f"{len(both):,} answers are both easy and hard")
        if answer < 0:
            if not easy and not hard:
                advice = "Remove it, or give its easy and hard answers."
                raise self.position.error("the query has no answers", advice=advice)
            return next(iter(hard or easy or ()))
        if (easy is not None or hard is not None) and answer not in {*(easy or ()), *(hard or ())}:
            raise self.position.error('"answer" is neither among the easy nor among the hard answers')
        return answer


@dataclass
class QuestionColumns:
    """The questions of one structure, column by column."""

    structure: Structure
    numbers: "defaultdict[str, array[int]]" = field(default_factory=lambda: defaultdict(lambda: array("i")))
    sizes: "defaultdict[str, array[int]]" = field(default_factory=lambda: defaultdict(lambda: array("i")))
    absent: set[str] = field(default_factory=set)  # columns that some question does not have
    lines: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, record: QuestionRecord, anchors: Sequence[int], relations: Sequence[int]) -> None:
        stated = record.fields.get("structure", self.structure.short)
        if stated in _SHORT_NAMES and stated != self.structure.short:
            problem = f'"structure" says {stated}, but the query is {self.structure.short}: {shown(record.query)}'
            raise record.position.error(problem)
        sets = {name: record.entities(name) for name in SETS}
        answer, missing = record.answer(sets["easy"], sets["hard"]), record.missing()
        columns: dict[str, Sequence[int] | None] = {
            "anchors": anchors,
            "relations": relations,
            "answers": [answer],
            **{name: [record.entity(name)] for name in SINGLES},
            **{name: None if entities is None else sorted(set(entities)) for name, entities in sets.items()},
            "missing": None if missing is None else [missing],
        }
        for name, values in columns.items():
            if values is None:
                self.absent.add(name)
            self.numbers[name].extend(values or ())
            self.sizes[name].append(len(values or ()))
        if record.position.line is not None:
            self.lines.append(record.position.line)

    def questions(self) -> Questions:
        """Return the questions; negatives are kept if any question has some, other columns if all questions do."""
        columns: dict[str, Any] = {name: np.frombuffer(values, np.int32) for name, values in self.numbers.items()}
        absent = self.absent - (set(SETS[2:]) if any(self.numbers[name] for name in SETS[2:]) else set())
        for name in SETS:
            columns[name] = Ragged(columns[name], np.append(0, np.cumsum(self.sizes[name], dtype=np.int64)))
        for name in ("anchors", "relations"):
            columns[name] = columns[name].reshape(len(columns["answers"]), -1)
        return Questions(self.structure, **{name: column for name, column in columns.items() if name not in absent})


# For each tree met so far: its structure, and the positions of the structure's anchors and relations in the walk.
Match = tuple[Structure, Sequence[int], Sequence[int]] | str
Matches = dict[tuple[Any, ...], Match]


def collect(
    records: Iterable[QuestionRecord], progress: Callable[[int], None]
) -> tuple[dict[str, dict[str, QuestionColumns]], Counter[str]]:
    """Return the questions by split and structure, and how many queries of other structures were set aside."""
    collected: dict[str, dict[str, QuestionColumns]] = {}
    set_aside: Counter[str] = Counter()
    matches: Matches = {}
    for number, record in enumerate(records, 1):
        order = _read_nodes(record)
        match = _match(order, matches)
        if isinstance(match, str):
            set_aside[match] += 1
        else:
            structure, anchors, relations = match
            split = record.split or ("train" if record.fields.get("hard") is None else HELD_OUT)
            columns = collected.setdefault(split, {}).setdefault(structure.name, QuestionColumns(structure))
            entity_ids = [int(node.entity) for node in order if isinstance(node, Anchor)]
            relation_ids = [int(node.relation) for node in order if isinstance(node, Project)]
            columns.add(record, [entity_ids[i] for i in anchors], [relation_ids[i] for i in relations])
        if number % 256 == 0:
            progress(number)
    return collected, set_aside


def _read_nodes(record: QuestionRecord) -> list[Query]:
    """Return the nodes of the query; none if it only excludes answers."""
    try:
        return nodes(read_nested(record.query, record.leaves, record.position))
    except QueryError:
        return []


def _match(order: list[Query], matches: Matches) -> Match:
    """Return the structure of a tree and where its columns are, or a description of a structure without a name."""
    tree = tuple([(type(node), len(children(node))) for node in order])
    if tree not in matches:
        if not order or is_negated(order[-1]):
            return ONLY_NEGATED
        template = compile_query(order[-1]).program.template
        matches[tree] = match_structure(template) or structure_name(template)
    return matches[tree]
