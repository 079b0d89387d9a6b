"""Run all benchmarks, or those named: `benchmarks/run.py`, `benchmarks/run.py graph_import`.

Each runs in a process of its own; the exit code is 0 only if all targets are met.
"""

import subprocess
import sys
import time
from pathlib import Path

from measure import SHORT

HERE = Path(__file__).resolve().parent
NO_BENCHMARKS = {"run", "measure", "versions", "rows", "row_questions"}  # need a trained run or an earlier version
WORDS = {0: "ok", SHORT: "SHORT"}


def main(wanted: list[str]) -> int:
    """Run the benchmarks, print a summary and return the exit code."""
    known = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.stem not in NO_BENCHMARKS}
    if unknown := [name for name in wanted if name not in known]:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    codes = {name: _run(known[name]) for name in wanted or known}
    print("== Summary")
    for name, (code, seconds) in codes.items():
        print(f"{name}: {WORDS.get(code, f'FAILED, exit code {code}')}, {seconds:.0f} s")
    return int(any(code for code, _ in codes.values()))


def _run(path: Path) -> tuple[int, float]:
    """Run a benchmark; return its exit code and seconds."""
    start = time.perf_counter()
    code = subprocess.run([sys.executable, str(path)], check=False).returncode
    print(flush=True)
    return code, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
