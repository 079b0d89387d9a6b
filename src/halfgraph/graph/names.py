"""Names and IRIs: an absolute IRI is its own name; any other name is relative to the graph's base IRI."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pyoxigraph import BlankNode, NamedNode

from halfgraph.errors import SettingError

DEFAULT_BASE = "http://halfgraph.local/"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANK = re.compile(r"_:\w([\w.-]*[\w-])?", re.ASCII)
# Characters that the path of an IRI may have unescaped (RFC 3987), without %, so that unescaping is unique.
_UNSAFE = re.compile(
    r"[^A-Za-z0-9._~!$&'()*+,;=:@/\-\xA0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"
    + "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd]"
)


@dataclass(frozen=True)
class Namer:
    """Converts names to RDF terms and back, relative to a base IRI."""

    base: str = DEFAULT_BASE

    def __post_init__(self) -> None:
        if not is_iri(self.base) or not self.base.endswith(("/", "#", ":", "=", "?", "_")):
            advice = "Pass an IRI that names can be appended to, for example http://example.org/"
            raise SettingError("--base", f'"{self.base}" cannot be the base of IRIs', advice=advice)

    def iri(self, name: str) -> str:
        if is_iri(name):
            return name
        path = _UNSAFE.sub(lambda match: quote(match.group(), safe=""), name)
        return self.base.rstrip("/") + path if path.startswith("/") else self.base + path

    def term(self, name: str) -> NamedNode | BlankNode:
        """Return the RDF term of a name; names such as _:b1 are blank nodes."""
        return BlankNode(name[2:]) if _BLANK.fullmatch(name) else NamedNode(self.iri(name))

    def names(self, iri: str) -> list[str]:
        """Return the names that may have this IRI: itself, and what follows the base."""
        names = [iri]
        if iri.startswith(self.base):
            names.append(unquote(iri[len(self.base) :]))
        root = self.base.rstrip("/")
        if iri.startswith(root + "/"):
            names.append(unquote(iri[len(root) :]))
        return names

    def clash(self, names: Collection[str]) -> tuple[str, str] | None:
        """Return two names with the same IRI, or None."""
        beginnings = ("/", self.base, self.base.rstrip("/") + "/")
        for name in names:
            if name.startswith(beginnings):  # no other name can clash without one of these
                iri = self.iri(name)
                for other in self.names(iri):
                    if other != name and other in names and self.iri(other) == iri:
                        return other, name
        return None


def is_iri(text: str) -> bool:
    """Return whether a text is an absolute IRI."""
    if not _SCHEME.match(text):
        return False
    try:
        return bool(NamedNode(text))
    except ValueError:
        return False
