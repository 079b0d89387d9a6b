"""Prometheus' text format: counters by route and status, a histogram whose buckets add up."""

import re

from hypothesis import given
from hypothesis import strategies as st

from halfgraph.serving.middleware import BUCKETS, Metrics


@given(st.lists(st.floats(0, 100), max_size=30))
def test_buckets_count_all_requests_that_took_no_longer(times):
    metrics = Metrics({"workers": lambda: 2})
    for seconds in times:
        metrics.count("/sparql", "GET", 200, seconds)
    text = metrics.text().decode()
    buckets = {bound: float(count) for bound, count in re.findall(r'le="([^"]+)",route="/sparql"} (\S+)', text)}
    assert buckets == ({f"{b}": sum(t <= b for t in times) for b in BUCKETS} | {"+Inf": len(times)} if times else {})
    assert "# TYPE halfgraph_workers gauge\nhalfgraph_workers 2.0\n" in text


def test_requests_are_counted_by_route_method_and_status(client):
    client.get("/sparql?query=nonsense")
    client.get("/somewhere/else")
    text = client.get("/metrics").text
    assert re.search(r'halfgraph_requests_total\{method="GET",route="/sparql",status="400"\} [1-9]', text)
    assert 'route="other"' in text
    assert "somewhere" not in text
    assert "# TYPE halfgraph_workers_replaced_total counter" in text
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line)
