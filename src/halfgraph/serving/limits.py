"""What a server allows: time, rows, sizes, and how many queries at once."""

from dataclasses import asdict, dataclass
from typing import Any

from halfgraph.errors import SettingError


@dataclass(frozen=True)
class Limits:
    """What a server allows; beyond it a request is cut or refused."""

    time: float = 30.0  # seconds for a query
    rows: int = 10_000  # of an answer, or triples
    body: int = 1_000_000  # bytes of a request
    query: int = 100_000  # characters of a query; the reader of SPARQL takes no more
    top: int = 1_000  # predicted answers
    memory: int = 2_000  # megabytes that a query may take
    workers: int = 2  # queries at the same time
    queue: int = 64  # queries that wait

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0 if name == "queue" else 1e-3 if name == "time" else 1
            if not value >= least:
                raise SettingError(f"--{name}", f"must be at least {least:g}, found {value}")

    def to_dict(self) -> dict[str, Any]:
        """The limits, ready for JSON."""
        return asdict(self)
