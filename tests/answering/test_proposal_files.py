"""Files of missing triples: each format says the same, and what names no format is refused."""

import csv
import io
import json
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from halfgraph.answering.cells import NamedEntity
from halfgraph.answering.proposal_files import SUFFIXES, check_suffix, write_proposals
from halfgraph.answering.proposals import ProposedTriple
from halfgraph.errors import FolderError, SettingError

ADA, LONDON, LIVES = (NamedEntity(f"http://e/{name}", name) for name in ("ada", "london", "lives"))
TRIPLES = [
    ProposedTriple(ADA, LIVES, LONDON, 0.9, 'similar ones do, "all" of them'),
    ProposedTriple(LONDON, LIVES, ADA, 0.000001, "ümlaut"),
]
FORMATS = {".nq": RdfFormat.N_QUADS, ".trig": RdfFormat.TRIG, ".ttl": RdfFormat.TURTLE}


def written(path: Path) -> list[tuple[str, str, str, float, str]]:
    """Return the triples of a file with their confidences and reasons."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [(*(row[end]["entity"] for end in ENDS), row["confidence"], row["reason"]) for row in rows]
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        return [(*(row[end] for end in ENDS), float(row["confidence"]), row["reason"]) for row in rows]
    by_subject: dict[str, dict[str, str]] = {}
    for quad in parse(path=str(path), format=FORMATS[path.suffix]):
        about = by_subject.setdefault(str(quad.subject), {})
        about[quad.predicate.value.replace("#", ":").rpartition(":")[2]] = quad.object.value
    rows = [about for about in by_subject.values() if "confidence" in about]
    return [(*(row[end] for end in ENDS), float(row["confidence"]), row["reason"]) for row in rows]


ENDS = ("subject", "predicate", "object")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_has_the_triples_with_confidence_and_reason(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"missing{suffix}"
    write_proposals(path, TRIPLES, "run", "SELECT", {"e": "http://e/"})
    expected = [
        (one.subject.entity, one.predicate.entity, one.object.entity, one.confidence, one.reason) for one in TRIPLES
    ]
    assert sorted(written(path)) == sorted(expected)


def test_turtle_asserts_the_triples_and_n_quads_keep_them_in_a_graph_of_their_own(tmp_path: Path) -> None:
    for suffix in (".ttl", ".nq"):
        write_proposals(tmp_path / f"missing{suffix}", TRIPLES, "run", "SELECT", {})
    stated = [quad.triple for quad in parse(path=str(tmp_path / "missing.ttl"))]
    graphs = {quad.triple: quad.graph_name for quad in parse(path=str(tmp_path / "missing.nq"))}
    assert set(stated) == set(graphs)
    ends = [one for one in stated if one.predicate.value == LIVES.entity]
    assert len(ends) == len(TRIPLES)
    assert {str(graphs[one]) for one in ends}.isdisjoint(str(graphs[one]) for one in stated if one not in ends)


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        write_proposals(tmp_path / "no" / "where.nq", [], "run", "SELECT", {})


@pytest.mark.parametrize("name", ["missing.xlsx", "missing", "missing.nq.gz"])
def test_a_suffix_that_names_no_format_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match=r"names no format. Name the file with one of \.nq, \.trig"):
        check_suffix(Path(name), "--out")
