"""The benchmark runs, and every contender does the steps it is timed for."""

import subprocess
import sys

from benchmarks.contenders import CONTENDERS
from graph.settings import ROOT


def test_a_short_round() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.steps", "--rounds", "1", "--steps", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    rows = [
        line for line in done.stdout.splitlines() if line.startswith("  ") and "steps" not in line
    ]
    assert [row.split("  ")[1] for row in rows] == [*CONTENDERS] * 2
    sizes = [float(row.split()[-2]) for row in rows[3:]]
    assert all(size > 0 for size in sizes)
