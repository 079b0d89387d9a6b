"""What the server counts, in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Metrics:
    """Requests by route, method and status, and how long they took."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.within: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Nothing; a request is counted."""
        self.requests[route, method, status] += 1
        places = self.within.setdefault(route, [0] * (len(BOUNDS) + 1))
        places[bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]  # a Counter counts in floats as well

    def text(self, now: Mapping[str, float]) -> str:
        """All of it, with some figures of the moment."""
        return "\n".join([*self._requests(), *self._latencies(), *_now(now)]) + "\n"

    def _requests(self) -> Iterator[str]:
        yield "# HELP halfgraph_requests_total Requests that were answered."
        yield "# TYPE halfgraph_requests_total counter"
        for (route, method, status), count in sorted(self.requests.items()):
            yield f'halfgraph_requests_total{{route="{route}",method="{method}",status="{status}"}} {count}'

    def _latencies(self) -> Iterator[str]:
        yield "# HELP halfgraph_request_seconds How long requests took."
        yield "# TYPE halfgraph_request_seconds histogram"
        for route, places in sorted(self.within.items()):
            total = 0
            for bound, count in zip((*BOUNDS, "+Inf"), places, strict=True):
                total += count
                yield f'halfgraph_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'halfgraph_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            yield f'halfgraph_request_seconds_count{{route="{route}"}} {total}'


def _now(figures: Mapping[str, float]) -> Iterator[str]:
    """The figures of the moment."""
    for name, value in figures.items():
        sort = "counter" if name.endswith("_total") else "gauge"
        yield from (f"# TYPE halfgraph_{name} {sort}", f"halfgraph_{name} {value:g}")
