"""The benchmark runs, and every contender does the steps it is timed for."""

import os

import pytest

from benchmarks.contenders import CONTENDERS
from tests.harness import prefork

pytestmark = pytest.mark.slow


def rows_of(*command: str) -> list[str]:
    done = prefork.run(*command, env=os.environ)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("  ") and "ms" not in line]


def test_a_short_round() -> None:
    rows = rows_of("benchmarks.steps", "--rounds", "1", "--steps", "3")
    assert [row.split("  ")[1] for row in rows] == [*CONTENDERS] * 2
    sizes = [float(row.split()[-2]) for row in rows[3:]]
    assert all(size > 0 for size in sizes)


def test_few_modes_and_many() -> None:
    rows = rows_of("benchmarks.many_modes", "--rounds", "1", "--modes", "0", "12")
    assert [row.split()[0] for row in rows] == ["0", "12"]
    assert all(float(figure) > 0 for row in rows for figure in row.split()[3:])


def test_the_tools_at_a_small_scale() -> None:
    rows = rows_of("benchmarks.tools", "--rounds", "1", "--scale", "100")
    names = ["search_files", "list_files", "all that the workspace has", "its first lines"]
    assert not {*names} - {row[:34].strip() for row in rows}
    assert all(float(row.split()[-2]) > 0 for row in rows)


def test_the_cache_pays() -> None:
    rows = rows_of("benchmarks.cache", "--steps", "16")
    plain, cached = (float(row.split()[-1]) for row in rows)
    assert plain == 1
    assert cached < 0.6
