"""The command line: data to stdout, progress to stderr, one line and an exit code for an error."""

from halfgraph.cli.main import main

__all__ = ["main"]
