"""W3C's test suites of SPARQL: the files of each test, unpacked once."""

import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from pyoxigraph import NamedNode, RdfFormat, Store

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "w3c-sparql"
needs_w3c = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is not there")
_TESTS = """
PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
SELECT DISTINCT ?type ?action ?query ?data {
  ?test a ?type ; mf:action ?action OPTIONAL { ?action qt:query ?query OPTIONAL { ?action qt:data ?data } }
}
"""


class Case(NamedTuple):
    """A test: the type of the manifest, the text, and the data of an evaluation test."""

    kind: str
    name: str
    text: str
    data: Path | None

    @property
    def is_negative(self) -> bool:
        return "Negative" in self.kind


@cache
def unpacked() -> Path:
    """The folder with the files of all suites."""
    root = Path(tempfile.mkdtemp(prefix="w3c-sparql-"))
    for archive in sorted(FOLDER.glob("*.tar.gz")):
        with tarfile.open(archive) as packed:
            packed.extractall(root, filter="data")
    return root


@cache
def cases(ending: str) -> list[Case]:
    """Every test whose text is in a file with an ending: rq (queries) or ru (updates)."""
    root = unpacked()
    found = [case for manifest in sorted(root.rglob("manifest*.ttl")) for case in _of(manifest, root)]
    return sorted({case.name: case for case in found if case.name.endswith(f".{ending}")}.values())


def _of(manifest: Path, root: Path) -> list[Case]:
    store = Store()
    store.load(path=str(manifest), format=RdfFormat.TURTLE, base_iri=manifest.as_uri())
    return [_case(row, root) for row in store.query(_TESTS) if isinstance(row["query"] or row["action"], NamedNode)]


def _case(row, root: Path) -> Case:
    path = Path((row["query"] or row["action"]).value.removeprefix("file://"))
    data = Path(row["data"].value.removeprefix("file://")) if row["data"] else None
    text = path.read_bytes().decode()
    return Case(row["type"].value.rpartition("#")[2], str(path.relative_to(root)), text, data)
