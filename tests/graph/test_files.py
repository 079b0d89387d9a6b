import contextlib
import os
from pathlib import Path

import pytest

from halfgraph.errors import FolderError, InputError
from halfgraph.graph.building import read_seeds
from halfgraph.graph.files import atomic_path, read_text, write_atomically


def test_a_file_has_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with contextlib.suppress(ValueError), atomic_path(path) as part:
        part.write_text("half of the ne")
        raise ValueError
    assert path.read_text() == "old"
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"cannot be written: No such file or directory\. Make room"):
        write_atomically(tmp_path / "missing" / "file", b"content", advice="Make room.")


def test_a_file_has_the_permissions_of_its_neighbours_whatever_a_library_gives_it(tmp_path: Path) -> None:
    (tmp_path / "neighbour").touch()
    with atomic_path(tmp_path / "file") as part:
        part.unlink()
        part.touch(mode=0o600)
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "neighbour").stat().st_mode


def test_lines_and_texts_have_a_longest_length(tmp_path: Path) -> None:
    (tmp_path / "seeds").touch()
    os.truncate(tmp_path / "seeds", 1_000_000_000)
    with pytest.raises(InputError, match="seeds, line 1: the line is longer than 32 MB, which is the limit"):
        read_seeds(tmp_path / "seeds")
    with pytest.raises(InputError, match="seeds: is longer than 1,000 bytes, which is the limit"):
        read_text(tmp_path / "seeds", 1_000, "Pass a query.")
