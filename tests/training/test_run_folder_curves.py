import json
import sys
from pathlib import Path
from typing import Any

import pytest

from halfgraph.training.run_folder import CURVES, METRICS, draw_curves


def row(step: int, **others: Any) -> dict[str, Any]:
    measures = {"auc": 0.5, "auc_hard": 0.5, "apr": 0.5, "apr_hard": 0.5}
    return {"step": step, "loss": 1.0 / step, **measures, **others}


def written(run: Path, rows: list[dict[str, Any]]) -> Path:
    (run / METRICS).write_text("".join(json.dumps(each) + "\n" for each in rows))
    return run


def test_curves_are_a_picture(tmp_path: Path) -> None:
    assert draw_curves(written(tmp_path, [row(10), row(20), row(30)]))
    assert (tmp_path / CURVES).read_bytes().startswith(b"\x89PNG")


def test_curves_take_a_loss_of_nothing_and_measures_that_are_not_there(tmp_path: Path) -> None:
    nan = float("nan")
    assert draw_curves(written(tmp_path, [row(10, loss=0.0), row(20, auc_hard=nan, apr=nan, apr_hard=nan)]))


@pytest.mark.parametrize("rows", [[], [row(10)], [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]])
def test_no_picture_is_made_of_too_little(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert not draw_curves(written(tmp_path, rows))
    assert not (tmp_path / CURVES).exists()


def test_no_picture_is_made_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not draw_curves(written(tmp_path, [row(10), row(20)]))
