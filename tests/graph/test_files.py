import contextlib
from pathlib import Path

import pytest

from halfgraph.errors import FolderError
from halfgraph.graph.files import atomic_path, write_atomically


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
