"""Counters of the server, written in the text format of Prometheus."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
Readings = Mapping[str, Callable[[], float]]  # by name; those that end in _total are counters, the others gauges


class Metrics:
    """Requests by route, method and status, their durations, and readings that are taken when they are asked for."""

    def __init__(self, readings: Readings) -> None:
        self._registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("halfgraph_requests", "Answered requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "halfgraph_request_seconds", "Duration of requests.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        self._registry.register(_Readings(readings))

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)


class _Readings(Collector):
    def __init__(self, readings: Readings) -> None:
        self.readings = readings

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for name, read in self.readings.items():
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(f"halfgraph_{name}", name.replace("_", " ").capitalize(), value=read())
