"""The JSON API: by example, and by schemathesis from its own description."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

EX = "http://example.org/"
PEOPLE = f"SELECT ?who {{ ?who <{EX}livesIn> <{EX}city1> }}"


def found(answer: httpx.Response) -> dict:
    assert answer.status_code == 200, answer.text
    return answer.json()


def error(answer: httpx.Response, status: int) -> dict:
    assert answer.status_code == status, answer.text
    fault = answer.json()["error"]
    assert set(fault) == {"message", "line", "column", "nearest", "advice"}
    return fault


def test_asking_gives_known_and_predicted_answers_and_how_the_query_was_understood(client):
    answers = found(client.post("/api/ask", json={"query": PEOPLE, "top": 4}))
    assert answers["variables"] == ["who"]
    assert answers["known"][0]["row"]["who"]["type"] == "uri"
    assert len(answers["predicted"]) == 4
    assert {"entity", "label", "type", "score"} <= set(answers["predicted"][0])
    assert {node["role"] for node in answers["explanation"]["nodes"]} == {"anchor", "target"}
    assert answers["explanation"]["edges"][0]["label"] == "livesIn"


def test_an_answer_is_explained_by_triples(client):
    someone = found(client.post("/api/ask", json={"query": PEOPLE}))["predicted"][0]["entity"]
    witness = found(client.post("/api/explain", json={"query": PEOPLE, "entity": someone}))
    assert witness["answer"]["entity"] == someone
    assert [triple["known"] for triple in witness["triples"]] == [False]


def test_a_syntax_error_has_its_position(client):
    fault = error(client.post("/api/ask", json={"query": "SELECT ?x {\n ?x ?y }"}), 400)
    assert (fault["line"], fault["column"]) == (2, 8)


def test_a_misspelt_name_is_reported_with_similar_ones(client):
    fault = error(client.post("/api/ask", json={"query": PEOPLE.replace("livesIn", "livesAt")}), 400)
    assert f"{EX}livesIn" in " ".join(fault["nearest"]) or "livesIn" in " ".join(fault["nearest"])
    assert fault["line"] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": "DROP ALL"}, 403),
        ({"query": "SELECT * { SERVICE <http://x/> { ?a ?b ?c } }"}, 403),
        ({"query": "ASK {}", "top": 0}, 422),
        ({"query": "ASK {}", "tops": 1}, 400),
        ({"query": ""}, 422),
        ({}, 422),
    ],
)
def test_what_is_not_asked_well_is_refused(client, body, status):
    error(client.post("/api/ask", json=body), status)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/api/ask?query=ASK{}", "Known: query, top, min_confidence, mode"),
        ("/api/complete?text=a", "Known: text, what, limit."),
        ("/api/entity?iri=a", "Known: iri, limit."),
        ("/api/info?", "This path takes no parameters."),
        ("/api/health?", "This path takes no parameters."),
        ("/api/examples?", "This path takes no parameters."),
        ("/sparql?query=ASK{}", "Known: query, default-graph-uri, named-graph-uri, format, output, results."),
        ("/sparql?", "Known: query"),
        ("/sparql/predict?query=ASK{}", "results, top, mode, min_confidence."),
    ],
)
def test_an_unknown_parameter_is_named_with_the_known_ones_at_every_route(client, path, known):
    fault = error(client.get(f"{path}&nonsense=1&min-confidence=0.9"), 400)
    assert fault["message"].startswith("unknown parameter min-confidence, nonsense")
    assert known in fault["advice"]


def test_an_unknown_key_of_a_body_or_an_address_is_named(client):
    fault = error(client.post("/api/explain", json={"query": PEOPLE, "entity": "a", "top": 3}), 400)
    assert (fault["message"], fault["advice"]) == ("unknown parameter top", "Known: query, entity, row, mode.")
    fault = error(client.post("/api/ask?top=3", json={"query": PEOPLE}), 400)
    assert fault["advice"] == "This path takes no parameters."


def test_no_json_at_all_is_400_and_an_unknown_address_404(client):
    error(client.post("/api/ask", content=b"{", headers={"Content-Type": "application/json"}), 400)
    error(client.get("/api/nothing"), 404)


def test_an_entity_has_its_neighbours_both_ways_and_its_literals(client):
    page = found(client.get("/api/entity", params={"iri": f"{EX}person7", "limit": 1}))
    assert (page["label"], page["type"]) == ("Pérson 7 Müller", "Person")
    assert {group["relation"]["label"] for group in page["out"]} <= {"livesIn", "knows"}
    assert page["degree"] == sum(group["count"] for group in page["out"] + page["in"])
    assert {"relation": f"{EX}age", "value": "27"} in page["literals"]
    city = found(client.get("/api/entity", params={"iri": f"{EX}city1", "limit": 2}))
    livers = next(group for group in city["in"] if group["relation"]["label"] == "livesIn")
    assert len(livers["others"]) == 2 < livers["count"]


def test_an_unknown_entity_is_404_with_the_nearest(client):
    fault = error(client.get("/api/entity", params={"iri": f"{EX}persn7"}), 404)
    assert f"{EX}person7" in fault["nearest"]


def test_info_has_graph_model_limits_and_versions_but_no_paths(client, run_folder):
    info = found(client.get("/api/info"))
    assert info["graph"]["view"] == "train"
    assert info["limits"]["rows"] == 200
    assert info["versions"]["halfgraph"]
    assert info["prefixes"]["rdf"].startswith("http")
    assert "source.nq" in info["model"]["card"]
    assert str(run_folder.parent) not in client.get("/api/info").text


def test_the_api_keeps_to_its_own_description(server):
    schema = schemathesis.openapi.from_url(f"{server.address}/api/openapi.json")
    asked = []
    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy()

        @settings(
            max_examples=15,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def keeps(case):
            case.call_and_validate(timeout=60, excluded_checks=[positive_data_acceptance])  # not any text is SPARQL

        keeps()
        asked.append(operation.ok().path)
    assert len(asked) == 9
