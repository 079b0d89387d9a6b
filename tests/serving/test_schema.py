"""The OpenAPI description is that of the schema's dataclasses."""

from dataclasses import fields

import pytest

from halfgraph.answering import explanation_schema as explained
from halfgraph.answering import schema as answers
from halfgraph.errors import SettingError
from halfgraph.serving import schema as api
from halfgraph.serving.schema import Limits


@pytest.fixture(scope="module")
def described(client):
    return client.get("/api/openapi.json").json()["components"]["schemas"]


@pytest.mark.parametrize("schema", [answers.PredictedAnswer, explained.ExplainedAnswer, explained.WitnessTriple])
def test_an_unmeasured_confidence_is_absent_or_null_and_never_a_number(described, schema):
    confidence = described[schema.__name__]["properties"]["confidence"]
    assert confidence.get("default") is None
    assert {"type": "null"} in confidence["anyOf"]
    assert "confidence" not in described[schema.__name__]["required"]


@pytest.mark.parametrize("schema", [answers.Answers, explained.QueryEdge, explained.Witness, api.EntityPage, api.Info])
def test_every_field_of_the_json_is_described(described, schema):
    keys = [one.metadata.get("alias", one.name) for one in fields(schema)]
    assert list(described[schema.__name__]["properties"]) == keys


@pytest.mark.parametrize("limit", [{"time": 0}, {"workers": 0}, {"queue": -1}])
def test_a_limit_out_of_its_range_is_refused(limit):
    with pytest.raises(SettingError, match="must be at least"):
        Limits(**limit)
