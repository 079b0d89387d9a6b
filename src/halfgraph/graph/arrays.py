"""Arrays as files of a folder, memory-mapped, and checks that their numbers fit together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError
from halfgraph.graph.files import excerpt
from halfgraph.graph.manifest import LARGE, check_file, read_manifest


def load_array(path: Path, advice: str = "", dtype: Any = None, ndim: int = 1) -> NDArray[Any]:
    """Open an array as a memory map, or read it if it is empty; with a dtype, it must have this one and `ndim` axes."""
    check_file(path, advice)
    try:
        array = _open_array(path)
    except Exception as error:  # a broken header raises whatever its bytes happen to ask for
        raise FolderError(path, f"cannot be read: {excerpt(str(error))}", advice=advice) from error
    if dtype is not None and (array.dtype != dtype or array.ndim != ndim):
        expected = f"{np.dtype(dtype)} in {ndim} axes"
        raise FolderError(path, f"has {array.dtype} in {array.ndim} axes, expected {expected}", advice=advice)
    return array


def _open_array(path: Path) -> NDArray[Any]:
    if path.stat().st_size > 128:
        return np.lib.format.open_memmap(path, mode="r")
    with path.open("rb") as file:
        return np.asarray(np.lib.format.read_array(file))


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy; unlike np.save, report a full disk as such."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


@dataclass(frozen=True)
class ArrayCheck:
    """Checks of the arrays in a folder; the numbers of large files are only read through if it has no manifest."""

    folder: Path
    advice: str
    has_manifest: bool

    @classmethod
    def of(cls, folder: Path, advice: str) -> "ArrayCheck":
        return cls(folder, advice, read_manifest(folder) is not None)

    def length(self, file: str, array: NDArray[Any], length: int) -> None:
        """Raise FolderError unless an array has `length` rows."""
        if len(array) != length:
            raise self._error(file, f"has {len(array):,} rows, but the other files ask for {length:,}")

    def ids(self, file: str, array: NDArray[Any], length: int, below: int, least: int = 0) -> None:
        """Raise FolderError unless an array has `length` rows of numbers from `least` to below `below`."""
        self.length(file, array, length)
        if self._reads(array) and array.size and not (array.min() >= least and array.max() < below):
            raise self._error(file, f"has numbers that are not from {least} to {below - 1:,}")

    def ranges(self, file: str, starts: NDArray[Any], end: int, count: int) -> None:
        """Raise FolderError unless `starts` divides 0 to `end` into `count` ranges."""
        self.length(file, starts, count + 1)
        is_sorted = not self._reads(starts) or bool((starts[1:] >= starts[:-1]).all())
        if not is_sorted or starts[0] != 0 or starts[-1] != end:
            raise self._error(file, f"does not divide 0 to {end:,} into ranges")

    def _reads(self, array: NDArray[Any]) -> bool:
        return array.nbytes <= LARGE or not self.has_manifest

    def _error(self, file: str, problem: str) -> FolderError:
        return FolderError(self.folder / file, problem, advice=self.advice)
