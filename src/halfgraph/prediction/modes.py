"""The prediction modes by name: the only list, which the CLI, the API, run folders and the page read."""

from typing import Literal, get_args

Mode = Literal["embedding", "links", "ensemble"]
MODES: tuple[Mode, ...] = get_args(Mode)
EMBEDDING, LINKS, ENSEMBLE = MODES
