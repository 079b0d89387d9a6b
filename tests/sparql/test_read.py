from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Intersect, Project
from halfgraph.sparql.filters import passes_filters
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import read
from halfgraph.sparql.rendering import to_sparql
from imported_graphs import made
from sparql_reading import LISTING_1, asking, entity, line_of, relation
from sparql_strategies import answers, any_queries, dags, full_trees, graph_data, store_of, trees, typed_graph


@given(trees() | dags() | full_trees())
def test_a_rendered_query_is_read_back_unchanged(graph, query) -> None:
    assert read(to_sparql(query, graph), graph).query == query


@given(dags(most=7), st.randoms(use_true_random=False))
def test_the_order_of_the_patterns_does_not_matter(graph, query, random) -> None:
    *head, select, body = to_sparql(query, graph).partition("WHERE {")
    patterns = body.rpartition("}")[0].strip().split("\n")
    random.shuffle(patterns)
    assert read("".join([*head, select, *patterns, "}"]), graph).query == query


@given(graph_data(), any_queries())
def test_any_rendered_query_is_refused_or_read_with_the_same_answers(data, query) -> None:
    with typed_graph(*data) as graph:
        try:
            reading = read(to_sparql(query, graph), graph)
        except SparqlError:
            return
        exact = Exact(graph.train)
        assert exact.answers(reading.query).tolist() == exact.answers(query).tolist()


def declared(text: str, graph: Graph) -> str:
    """A text with all the prefixes that it may use."""
    prefixes = Prefixes.of(graph)
    return f"BASE <{prefixes.base}> " + "".join(f"PREFIX {p}: <{n}> " for p, n in prefixes.namespaces.items()) + text


@st.composite
def texts(draw: st.DrawFn) -> str:
    """The patterns of a random DAG as somebody might write them."""
    count = draw(st.integers(1, 5))
    names = draw(st.permutations("abcde"))[: count - 1]
    terms = [*(draw(st.sampled_from([f"?{name}", f"${name}", f"_:{name}"])) for name in names), "?x"]
    entities = st.sampled_from(["</m/0e1>", "<http://example.org/e0>", ":Side%20Effect::2", r"dbr:e\,_4", "</e3.>"])
    path = st.sampled_from(
        [
            ":r0",
            "<r1>",
            ":r2",
            "^:r0",
            ":r0/:r1",
            "^(:r0/^:r1)",
            "(:r2/:r0)/^:r1",
            ":r1/(:r0)",
            ":r0|:r1",
            "(:r0|^:r1)/:r2",
        ]
    )
    patterns = []
    for place, term in enumerate(terms):
        sources = st.sampled_from(terms[:place]) | entities if place else entities
        for source in draw(st.lists(sources, min_size=1, max_size=2)):
            patterns.append((source, draw(path), term))
        if place + 1 < count:
            patterns.append((term, draw(path), draw(st.sampled_from(terms[place + 1 :]))))
    return _written(draw, draw(st.permutations(patterns)), draw(st.lists(st.sampled_from(FURTHER), max_size=3)))


FURTHER = [
    "FILTER(?x != </m/0e1>)",
    "FILTER(</m/0e1> != ?x && (?x NOT IN (</e3.>, <http://example.org/e0>)))",
    "FILTER(?x IN (</m/0e1>, </e3.>, :Side%20Effect::2)) .",
    "FILTER(?x = <http://example.org/e0> || ?x = </e3.>)",
    "FILTER(isIRI(?x))",
    "FILTER STRENDS(STR(?x), '.')",
    "FILTER NOT EXISTS { ?x :r0 </m/0e1> }",
    "FILTER NOT EXISTS { </m/0e1> :r0/:r1 ?x FILTER NOT EXISTS { ?x :r2 </e3.> } }",
    "FILTER NOT EXISTS { ?x :r2 [] }",
    "FILTER NOT EXISTS { { ?x :r0 </e3.> } UNION { VALUES ?x { </m/0e1> } } }",
    "FILTER EXISTS { ?x :r1 </m/0e1> }",
    "MINUS { ?x :r1 </m/0e1> ; :r0|:r1 </e3.> }",
    "{ ?x :r0 </m/0e1> } UNION { ?x a <type%200> ; :r1|:r2 </e3.> MINUS { ?x :r0 </e3.> } }",
    "{ ?x :r0|^:r2 </m/0e1> FILTER(?x != </e3.>) }",
    "VALUES ?x { </m/0e1> </e3.> <http://example.org/e0> }",
    "VALUES (?x) { (</m/0e1>) (</e3.>) }",
    "{ ?p (:r0|:r1) ?x . ?p :r0 </m/0e1> }",
]


def _written(draw: st.DrawFn, patterns: list[tuple[str, str, str]], further: list[str]) -> str:
    """Patterns as a query, those of one subject that follow each other drawn together, and what else is to hold."""
    body, last = "", ("", "")
    for subject, path, target in patterns:
        if (subject, path) == last:
            body += f" , {target}"
        elif subject == last[0]:
            body += f" ;\n {path} {target}"
        else:
            body += f"{' . # no OPTIONAL' if body else ''}\n {subject} {path} {target}"
        last = (subject, path)
    type_id = draw(st.sampled_from(["", " . ?x a <type%200>", ". :type%201 ^rdf:type ?x"]))
    return f"SELECT ?x {{{body}{type_id}\n{' '.join(further)} }}"


@given(graph_data(), texts())
def test_a_text_is_read_with_the_answers_that_the_store_has_for_it(data, text) -> None:
    with typed_graph(*data) as graph:
        store = store_of(graph)
        expected = answers(store, declared(text, graph), graph, target="x")
        reading = read(text, graph)
        found = Exact(graph.train).answers(reading.query)
        assert (
            found[passes_filters(asking(store), reading.conditions, reading.target, graph, found)].tolist() == expected
        )


@pytest.mark.parametrize(
    "body",
    [
        "[ :r0 ?x ] :r1 </m/0e1> .",
        "[ :r0 ?x ; :r1 </m/0e1> ]",
        "?x :r0 [ :r1 [ :r2 </m/0e1> ] ; :r0 </e3.> ] ; :r1 </e3.>",
        "</m/0e1> :r1 [ :r0 [ :r2 ?x ] , [ :r1/:r2 ?x ] ]",
        "[] :r0 ?x ; ^:r1 </m/0e1> .",
        "{ _:a :r0 ?x . </m/0e1> :r1 _:a } { ?x :r2 </e3.> }",
        "?x :r0 </m/0e1> ; ; .",
    ],
)
def test_brackets_are_read_as_the_store_reads_them(graph: Graph, body: str) -> None:
    text = f"SELECT ?x {{ {body} }}"
    expected = answers(store_of(graph), declared(text, graph), graph, target="x")
    assert Exact(graph.train).answers(read(text, graph).query).tolist() == expected


def test_the_paper_s_listing_1_is_read_as_its_figure_1_draws_it(dbpedia: Graph) -> None:
    ucla = Project(entity(dbpedia, "University_of_California,_Los_Angeles"), relation(dbpedia, "almaMater") ^ 1)
    guest = Project(entity(dbpedia, "Escape_Clause"), relation(dbpedia, "guest"))
    reading = read(LISTING_1, dbpedia)
    assert reading.query == Project(Intersect((ucla, guest)), relation(dbpedia, "deathCause"))
    assert (reading.target, reading.limit, reading.offset) == ("Disease", None, 0)
    assert reading.variables["Disease"] is reading.query
    assert reading.variables["Person"] == Intersect((ucla, guest))
    escaped = LISTING_1.replace(",_", "\\,_")
    in_full = LISTING_1.replace(
        "dbr:University_of_California,_Los_Angeles",
        "<http://dbpedia.org/resource/University_of_California,_Los_Angeles>",
    )
    assert read(escaped, dbpedia).query == read(in_full, dbpedia).query == reading.query


SAME = "?x dbo:almaMater dbr:Escape_Clause"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x WHERE { ?x dbo:almaMater dbr:Escape_Clause }",
        "select $x { $x dbo:almaMater dbr:Escape_Clause. }",
        "SELECT * { ?x dbo:almaMater dbr:Escape_Clause }",
        "SELECT REDUCED ?x { ?x dbo:almaMater dbr:Escape_Clause }",
        "SELECT ?x { ?x <http://dbpedia.org/ontology/almaMater> <http://dbpedia.org/resource/Escape_Clause> }",
        "SELECT ?x { dbr:Escape_Clause ^dbo:almaMater ?x }",
        "SELECT ?x { ?x (((dbo:almaMater))) dbr:Escape_Clause }",
        "SELECT ?x { ?x ^(^dbo:almaMater) dbr:Escape_Clause }",
        "SELECT ?x { { ?x dbo:almaMater dbr:Escape_Clause } {} . }",
        f"SELECT ?x {{ {SAME} . {SAME} ; dbo:almaMater dbr:Escape_Clause , dbr:Escape_Clause }}",
        "# SELECT ?y\nSELECT ?x # FILTER\n{ ?x dbo:almaMater # UNION { <\n dbr:Escape_Clause }",
        "PREFIX o: <http://dbpedia.org/ontology/> SELECT ?x { ?x o:almaMater dbr:Escape_Clause }",
        "PREFIX dbo: <http://dbpedia.org/> SELECT ?x { ?x <http://dbpedia.org/ontology/almaMater> dbr:Escape_Clause }",
        "PREFIX select: <http://dbpedia.org/ontology/> SELECT ?x { ?x select:almaMater dbr:Escape_Clause }",
        "BASE <http://dbpedia.org/> SELECT ?x { ?x <ontology/almaMater> </resource/Escape_Clause> }",
        "BASE <http://dbpedia.org/ontology/> PREFIX : <../resource/> SELECT ?x { ?x <almaMater> :Escape_Clause }",
        "SELECT ?x { ?x<http://dbpedia.org/ontology/almaMater>dbr:Escape_Clause}",
        r"SELECT ?x { ?x <http://dbpedia.org/ontology/alma\u004dater> dbr:Escape\_Clause }",
    ],
)
def test_equivalent_spellings_of_a_query_are_read_alike(dbpedia: Graph, text: str) -> None:
    expected = Project(entity(dbpedia, "Escape_Clause"), relation(dbpedia, "almaMater") ^ 1)
    assert read(text, dbpedia).query == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "SELECT ?x { dbr:Escape_Clause dbo:guest/dbo:spouse ?x }",
            "?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ spouse(?v1, ?answer)",
        ),
        (
            "SELECT ?x { ?x ^dbo:spouse/^(dbo:spouse/dbo:guest) dbr:Escape_Clause }",
            "?answer . ∃ ?v1, ?v2 : spouse(Escape Clause, ?v1) ∧ guest(?v1, ?v2) ∧ spouse(?v2, ?answer)",
        ),
        (
            "SELECT ?x { dbr:Escape_Clause dbo:guest [ dbo:spouse ?x ; a dbo:Person ] }",
            "?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ Person(?v1) ∧ spouse(?v1, ?answer)",
        ),
        (
            "SELECT ?x { _:b dbo:spouse ?x . dbr:Escape_Clause dbo:guest _:b }",
            "?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ spouse(?v1, ?answer)",
        ),
        (
            "SELECT ?x { dbr:Escape_Clause dbo:guest ?x . ?x a dbo:Person }",
            "?answer . guest(Escape Clause, ?answer) ∧ Person(?answer)",
        ),
        (
            "SELECT ?x { ?x rdf:type dbo:Person ; ^dbo:guest dbr:Escape_Clause }",
            "?answer . guest(Escape Clause, ?answer) ∧ Person(?answer)",
        ),
        (
            "SELECT ?x { dbo:Person ^a ?x . dbr:Escape_Clause dbo:guest ?x }",
            "?answer . guest(Escape Clause, ?answer) ∧ Person(?answer)",
        ),
        (
            "SELECT ?x { dbr:Escape_Clause dbo:guest ?x . dbr:Escape_Clause dbo:spouse ?x }",
            "?answer . guest(Escape Clause, ?answer) ∧ spouse(Escape Clause, ?answer)",
        ),
        (
            "SELECT ?x { dbr:Escape_Clause dbo:guest/dbo:spouse ?x , ?x }",
            "?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ spouse(?v1, ?answer)",
        ),
    ],
)
def test_paths_blank_nodes_and_classes_are_read(dbpedia: Graph, text: str, line: str) -> None:
    assert line_of(text, dbpedia) == line


def test_distinct_limit_and_offset_are_kept(dbpedia: Graph) -> None:
    reading = read("SELECT DISTINCT ?x { ?x dbo:guest dbr:Escape_Clause } OFFSET 5 LIMIT 10", dbpedia)
    assert (reading.limit, reading.offset) == (10, 5)
    assert read("SELECT ?x { ?x dbo:guest dbr:Escape_Clause } LIMIT 0", dbpedia).limit == 0


def test_variables_are_distinguished_by_their_names(dbpedia: Graph) -> None:
    text = "SELECT ?x { dbr:Escape_Clause dbo:guest/dbo:spouse _:b . _:b dbo:spouse [ dbo:guest ?x ] }"
    assert sorted(read(text, dbpedia).variables) == ["/0.1", "[1]", "_:b", "x"]


def test_names_of_freebase_can_be_written_relative_to_the_base(tmp_path: Path) -> None:
    graph = made(tmp_path, "/m/010016\t/location/county\t/m/0mr_8\n")
    text = "SELECT ?x { </m/010016> </location/county> ?x }"
    assert read(text, graph).query == Project(Anchor(0), 0)
    assert read(text.replace("</m", "<http://halfgraph.local/m"), graph).query == Project(Anchor(0), 0)


def test_the_prefixes_of_the_graph_need_not_be_declared(tmp_path: Path) -> None:
    graph = made(tmp_path, "@prefix ex: <http://x/> . ex:a ex:p ex:b .", ending="ttl")
    assert read("SELECT ?x { ex:a ex:p ?x }", graph).query == Project(Anchor(0), 0)


def test_where_types_are_triples_of_the_graph_a_is_a_relation(tmp_path: Path) -> None:
    graph = made(tmp_path, "Rome\thttp://www.w3.org/1999/02/22-rdf-syntax-ns#type\tCity\nRome\tin\tItaly\n")
    assert line_of("SELECT ?x { ?x a :City }", graph) == "?answer . type⁻¹(City, ?answer)"
    assert line_of("SELECT ?x { :Rome a ?x }", graph) == "?answer . type(Rome, ?answer)"
    assert (
        line_of("SELECT ?x { ?x :in :Italy ; a :Untyped }", graph)
        == "?answer . in⁻¹(Italy, ?answer) ∧ Untyped(?answer)"
    )


def test_the_same_triples_under_other_prefixes_are_another_reading(tmp_path: Path) -> None:
    first = made(tmp_path, "@prefix ex: <http://x/> . ex:a ex:p ex:b .", ending="ttl")
    second = made(tmp_path, "@prefix ex: <http://y/> . <http://x/a> <http://x/p> <http://x/b> .", ending="ttl")
    assert first.fingerprint == second.fingerprint
    assert read("SELECT ?x { ex:a ex:p ?x }", first)
    with pytest.raises(UnknownName):
        read("SELECT ?x { ex:a ex:p ?x }", second)


def test_two_hundred_patterns_are_read(dbpedia: Graph) -> None:
    chains = [f"dbr:Escape_Clause dbo:guest ?a{number} . ?a{number} dbo:spouse ?x" for number in range(99)]
    text = f"SELECT ?x {{ {' . '.join(chains)} . ?x dbo:spouse dbr:Fritz_Feld }}"
    assert line_of(text, dbpedia).count("∧") == 198


@pytest.mark.parametrize("brackets", ["{}", "()", "[]"])
def test_twenty_brackets_in_brackets_are_read(dbpedia: Graph, brackets: str) -> None:
    nested = {
        "{}": "{" * 18 + SAME + "}" * 18,
        "()": "?x " + "(" * 18 + "dbo:almaMater" + ")" * 18 + " dbr:Escape_Clause",
        "[]": "?x dbo:guest " + "[ dbo:guest " * 18 + "dbr:Escape_Clause" + "]" * 18,
    }
    assert read(f"SELECT ?x {{ {nested[brackets]} }}", dbpedia)


def test_texts_are_read_by_several_threads_at_once(dbpedia: Graph) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: read(LISTING_1 + f"LIMIT {number}", dbpedia), range(20)))
    assert [reading.limit for reading in found] == list(range(20))
    assert len({reading.query for reading in found}) == 1


def test_the_name_of_a_variable_may_begin_with_an_underscore(dbpedia: Graph) -> None:
    reading = read("SELECT ?_x { dbr:Escape_Clause dbo:guest ?_x }", dbpedia)
    assert reading.target == "_x"
    assert read("SELECT * { dbr:Escape_Clause dbo:guest ?_x }", dbpedia).target == "_x"


def test_nodes_know_the_variable_and_where_it_stands(dbpedia: Graph) -> None:
    text = "SELECT ?x { dbr:Escape_Clause dbo:guest ?person . ?person dbo:spouse ?x }"
    query = read(text, dbpedia).query
    assert (query.name, query.source.name) == ("x", "person")
    assert text[slice(*query.source.span)] == "?person"
