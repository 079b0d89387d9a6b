"""Prefixes: IRIs as short as SPARQL lets them be, and the namespaces that a query text may use undeclared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from halfgraph.graph.folder import Graph

# Namespaces that everybody abbreviates alike; those that a graph brings along come before them.
COMMON = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "wikibase": "http://wikiba.se/ontology#",
    "bd": "http://www.bigdata.com/rdf#",
    "fb": "http://rdf.freebase.com/ns/",
}

# The characters of names, by the numbers of the rules in https://www.w3.org/TR/sparql11-query/#sparqlGrammar
PN_CHARS_BASE = (  # 164
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
PN_CHARS = PN_CHARS_BASE + "_0-9\u00b7\u0300-\u036f\u203f-\u2040-"  # 167
_LOCAL = re.compile(  # 169, without backslashes: a name that would need one is written as a full IRI
    f"(?:[{PN_CHARS_BASE}_:0-9]|%[0-9A-Fa-f]{{2}})"
    f"(?:(?:[{PN_CHARS}.:]|%[0-9A-Fa-f]{{2}})*(?:[{PN_CHARS}:]|%[0-9A-Fa-f]{{2}}))?"
)
_ROOT = re.compile(r"[a-z]+://[^/?#]+/")  # a base without a path, such as http://halfgraph.local/
_DOTS = re.compile(r"/\.{1,2}(/|$)")  # what would be taken out of a relative IRI


@dataclass(frozen=True)
class Prefixes:
    """The namespaces by prefix, and the base that relative IRIs are relative to."""

    namespaces: Mapping[str, str]
    base: str

    @classmethod
    def of(cls, graph: Graph) -> "Prefixes":
        """Those of a graph: its own, the common ones, and the empty prefix for its base."""
        return cls({"": graph.namer.base} | COMMON | dict(graph.description["prefixes"]), graph.namer.base)

    @cached_property
    def _longest_first(self) -> list[tuple[str, str]]:
        return sorted(self.namespaces.items(), key=lambda pair: (-len(pair[1]), pair[0]))

    def short(self, iri: str) -> str:
        """An IRI as SPARQL: dbr:UCLA, or </m/010016> relative to the base, or in full."""
        for prefix, namespace in self._longest_first:
            if iri.startswith(namespace) and _LOCAL.fullmatch(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        path = iri[len(self.base) - 1 :]
        if iri.startswith(self.base) and _ROOT.fullmatch(self.base) and path[1:2] != "/" and not _DOTS.search(path):
            return f"<{path}>"
        return f"<{iri}>"

    def declarations(self, shortened: Iterable[str]) -> list[str]:
        """The lines that declare the prefixes, and the base, which some shortened IRIs use."""
        texts = list(shortened)
        used = {text.partition(":")[0] for text in texts if not text.startswith("<")}
        base = [f"BASE <{self.base}>"] if any(text.startswith("</") for text in texts) else []
        return base + [f"PREFIX {prefix}: <{self.namespaces[prefix]}>" for prefix in sorted(used)]
