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
    names = [row[2:].partition("  ")[0].partition(":")[0] for row in rows]
    assert names == [*CONTENDERS, "of a step's time"] * 2
    sizes = [float(row.split()[-2]) for row in rows[len(names) // 2 : -1]]
    assert all(size > 0 for size in sizes)


def test_a_start() -> None:
    rows = rows_of("benchmarks.start", "--rounds", "0")
    assert [row.split()[0] for row in rows] == ["create_agent", "modeshift"]
    assert all(float(row.split()[1]) > 0 for row in rows)


def test_a_door() -> None:
    """A terminal is in ``test_a_long_answer``; that a server starts, ``tests/clients`` sees."""
    rows = rows_of("benchmarks.doors", "--rounds", "0", "--idle", "0.1", "--only", "editor")
    assert [row[2:26].strip() for row in rows] == ["the SDK's echo agent", "modeshift-acp"]
    assert all(float(figure) > 0 for row in rows for figure in row[26:].split())


def test_a_long_answer() -> None:
    cat, chat = rows_of("benchmarks.terminal", "--rounds", "1")
    assert all(float(figure) > 0 for figure in [*cat.split()[1:], *chat.split()[2:]])


def test_few_modes_and_many() -> None:
    rows = rows_of("benchmarks.many_modes", "--rounds", "1", "--modes", "0", "12", "--proofs")
    assert [row.split()[0] for row in rows] == ["0", "12"]
    assert all(float(figure) > 0 for row in rows for figure in row.split()[3:])


def test_the_tools_at_a_small_scale() -> None:
    rows = rows_of("benchmarks.tools", "--rounds", "1", "--scale", "100")
    names = ["search_files", "list_files", "all that the workspace has", "its first lines"]
    assert not {*names} - {row[:34].strip() for row in rows}
    assert all(float(row.split()[-2]) > 0 for row in rows)


def test_a_fresh_start_is_cheaper() -> None:
    whole, plan, _ = rows_of("benchmarks.fresh", "--steps", "8")
    assert float(plan.split()[-2]) < float(whole.split()[-2])


def test_the_cache_pays() -> None:
    """Here a change of mode costs next to nothing, in each wire format; elsewhere it costs much."""
    rows = rows_of("benchmarks.cache", "--steps", "16")
    figures_of = [(row[:34].strip(), [*map(float, row[34:].split())]) for row in rows]
    shares = [figures[2] for name, figures in figures_of if name == "Modeshift"]
    most = [figures[0] for name, figures in figures_of if name.startswith("at most")]
    assert len(shares) == len(most) == 4, "many calls in an answer among them"
    assert all(could - did < 0.012 for could, did in zip(most, shares, strict=True))
    ratios = {name: figures[-1] for name, figures in figures_of}
    assert ratios["Modeshift"] < ratios["MODE_CHANGES=rewrite"] < 1 < ratios["create_agent"] + 0.01
