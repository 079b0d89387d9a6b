"""Graphs known by name: the demo, which is made on the spot, and where to get the published ones."""

from collections.abc import Callable, Mapping

from halfgraph.graph.demo import NamedTriples, baseball

CATALOGUE: Mapping[str, Callable[[], NamedTriples]] = {"demo": baseball}

# Published graphs are not fetched by themselves: fetch the file, then `halfgraph import`.
PUBLISHED: Mapping[str, str] = {
    "fb15k-237": "https://github.com/hyren/query2box (KG_and_query_data), 14,505 entities, with query benchmarks",
    "wn18rr": "https://github.com/villmow/datasets_knowledge_embedding, 41,105 entities",
    "codex": "https://github.com/tsafavi/codex, Wikidata in three sizes",
    "hetionet": "https://github.com/hetio/hetionet, a biomedical graph",
    "dbpedia": "https://databus.dbpedia.org/dbpedia/collections/latest-core, or the endpoint https://dbpedia.org/sparql",
}
