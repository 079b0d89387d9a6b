"""The command line: data on stdout, progress on stderr, one line and an exit code for an error."""

from halfgraph.cli.main import main

__all__ = ["main"]
