"""Names and IRIs: an absolute IRI is its own name; any other name is relative to the graph's base."""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pyoxigraph import BlankNode, NamedNode

from halfgraph.errors import SettingError

DEFAULT_BASE = "http://halfgraph.local/"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANK = re.compile(r"_:\w([\w.-]*[\w-])?", re.ASCII)
# What the path of an IRI may hold as it is (RFC 3987); % is not among it, so that the way back is unique.
_UNSAFE = re.compile(
    r"[^A-Za-z0-9._~!$&'()*+,;=:@/\-\xA0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"
    + "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd]"
)


@dataclass(frozen=True)
class Namer:
    """What turns names into RDF terms and back, relative to a base IRI."""

    base: str = DEFAULT_BASE

    def __post_init__(self) -> None:
        if not is_iri(self.base) or not self.base.endswith(("/", "#", ":", "=", "?", "_")):
            advice = "Pass an IRI that names can be added to, such as http://example.org/"
            raise SettingError("--base", f'"{self.base}" cannot be the beginning of an IRI', advice=advice)

    def iri(self, name: str) -> str:
        """The IRI of a name."""
        if is_iri(name):
            return name
        path = _UNSAFE.sub(lambda found: quote(found.group(), safe=""), name)
        return self.base.rstrip("/") + path if path.startswith("/") else self.base + path

    def term(self, name: str) -> NamedNode | BlankNode:
        """The RDF term of a name; names such as _:b1 are blank nodes."""
        return BlankNode(name[2:]) if _BLANK.fullmatch(name) else NamedNode(self.iri(name))

    def names(self, iri: str) -> list[str]:
        """The names that an IRI may stand for: itself, and what follows the base."""
        found = [iri]
        if iri.startswith(self.base):
            found.append(unquote(iri[len(self.base) :]))
        root = self.base.rstrip("/")
        if iri.startswith(root + "/"):
            found.append(unquote(iri[len(root) :]))
        return found

    def clash(self, names: Iterable[str], known: Container[str]) -> tuple[str, str] | None:
        """Two of the known names that would have the same IRI, if there are such."""
        beginnings = ("/", self.base, self.base.rstrip("/") + "/")
        for name in names:
            if name.startswith(beginnings):  # no other name can clash without one of these
                iri = self.iri(name)
                for other in self.names(iri):
                    if other != name and other in known and self.iri(other) == iri:
                        return other, name
        return None


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI."""
    if not _SCHEME.match(text):
        return False
    try:
        return bool(NamedNode(text))
    except ValueError:
        return False
