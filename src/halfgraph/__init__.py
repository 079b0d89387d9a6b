"""halfgraph answers logical queries over incomplete knowledge graphs."""

__version__ = "0.1.0"
