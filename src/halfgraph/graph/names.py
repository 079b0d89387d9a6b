"""Names and IRIs: an absolute IRI is its own name; any other name is relative to the graph's base."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pyoxigraph import BlankNode, NamedNode

DEFAULT_BASE = "http://halfgraph.local/"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
# What an IRI may hold as it is: everything but these, and % so that the way back is unique.
_UNSAFE = re.compile(r"[\x00-\x20<>\"{}|^`\\%?#\[\]]")


@dataclass(frozen=True)
class Namer:
    """What turns names into RDF terms and back, relative to a base IRI."""

    base: str = DEFAULT_BASE

    def iri(self, name: str) -> str:
        """The IRI of a name."""
        if _ABSOLUTE.fullmatch(name):
            return name
        path = _UNSAFE.sub(lambda found: quote(found.group(), safe=""), name)
        return self.base.rstrip("/") + path if path.startswith("/") else self.base + path

    def term(self, name: str) -> NamedNode | BlankNode:
        """The RDF term of a name; names that begin with _: are blank nodes."""
        return BlankNode(name[2:]) if name.startswith("_:") else NamedNode(self.iri(name))

    def names(self, iri: str) -> list[str]:
        """The names that an IRI may stand for: itself, and what follows the base."""
        root = self.base.rstrip("/") + "/"
        if not iri.startswith(root):
            return [iri]
        rest = unquote(iri[len(root) :])
        return [iri, rest, "/" + rest] if self.base.endswith("/") else [iri, "/" + rest]
