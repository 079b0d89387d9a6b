"""The examples run as they stand."""

import random
import subprocess
import sys
from pathlib import Path

from pyoxigraph import RdfFormat, parse

from small_runs import SMALL_LINKS

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def shown(*arguments):
    script = f"import runpy, sys; {SMALL_LINKS}; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_demo_is_asked_from_python_and_explains_its_answer(tmp_path):
    lines = shown(EXAMPLES / "ask_the_demo.py", tmp_path, 3)
    assert len([line for line in lines if "%" in line]) == 5
    assert "missing Sandy Koufax won award Cy Young Award" in lines


def test_statements_to_check_are_written_for_a_triple_store(tmp_path):
    rng = random.Random(0)
    lines = [f"<a:p{i}> <a:knows> <a:p{rng.randrange(60)}> ." for i in range(60) for _ in range(4)]
    lines += [f"<a:p{i}> <a:livesIn> <a:c{i % 5}> ." for i in range(60)]
    (tmp_path / "people.ttl").write_text("\n".join(lines))
    last = shown(EXAMPLES / "propose_triples.py", tmp_path / "people.ttl", tmp_path / "made", 3)[-1]
    proposed = list(parse(path=str(tmp_path / "made" / "missing.nq"), format=RdfFormat.N_QUADS))
    assert int(last.split()[0]) == sum(not str(quad.graph_name.value).endswith(":about") for quad in proposed)


def test_the_examples_are_short():
    assert all(len(path.read_text().splitlines()) <= 28 for path in EXAMPLES.glob("*.py"))
