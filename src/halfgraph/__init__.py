"""halfgraph answers logical queries over incomplete knowledge graphs."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from halfgraph.api import (
        Answers,
        Engine,
        Evaluation,
        Graph,
        HalfgraphError,
        Witness,
        ask,
        evaluate,
        explain,
        load,
        sample,
        train,
    )

__all__ = [
    "Answers",
    "Engine",
    "Evaluation",
    "Graph",
    "HalfgraphError",
    "Witness",
    "ask",
    "evaluate",
    "explain",
    "load",
    "sample",
    "train",
]


def __getattr__(name: str) -> Any:
    """Load a public name from `halfgraph.api`; torch is not imported before the first one is used."""
    if name in __all__:
        from halfgraph import api

        return getattr(api, name)
    raise AttributeError(f"module 'halfgraph' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
