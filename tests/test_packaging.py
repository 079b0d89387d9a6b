"""The sdist and the wheel have the page inside, and are built without Node.js."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "halfgraph/serving/page/index.html"
TRACKED = ("pyproject.toml", "README.md", "LICENSE", "src", "examples", ".gitignore")


def copy_of_the_project(folder: Path) -> Path:
    """A copy with a page of one line in the place of the built one."""
    names = subprocess.run(["git", "ls-files", *TRACKED], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    page = folder / "src" / PAGE
    page.parent.mkdir()
    page.write_text("<!doctype html><title>halfgraph</title>")
    return folder


@pytest.mark.slow
def test_the_page_is_in_the_sdist_and_in_the_wheel_that_is_built_from_it(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path / "project")
    without_node = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    command = [sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(project)]
    built = subprocess.run(command, env=without_node, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (sdist,), (wheel,) = (list((tmp_path / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    with tarfile.open(sdist) as archive:
        assert any(name.endswith(f"src/{PAGE}") for name in archive.getnames())
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {PAGE, "halfgraph/sparql/grammar.lark", "halfgraph/py.typed"} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"halfgraph"}
