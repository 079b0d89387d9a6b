"""The prediction modes by name: the only list, which the CLI, the API, run folders and the page read."""

from typing import Literal, get_args

Mode = Literal["embedding", "links", "ensemble"]
MODES: tuple[Mode, ...] = get_args(Mode)
EMBEDDING, LINKS, ENSEMBLE = MODES
OLD_NAMES = {"vector": EMBEDDING, "scored": LINKS, "both": ENSEMBLE}  # in run folders written before the redesign


def current_name(mode: str) -> str:
    """Return the present name of a mode that a run folder names."""
    return OLD_NAMES.get(mode, mode)
