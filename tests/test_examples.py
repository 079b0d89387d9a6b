"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_the_example_in_python_trains_a_little_and_predicts_five_people(tmp_path):
    command = [sys.executable, str(EXAMPLES / "ask_the_demo.py"), str(tmp_path), "3"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) == 5
