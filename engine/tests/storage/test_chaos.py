"""The short form of ``make chaos``."""

import json
import os

import pytest

from tests.chaos.__main__ import FAULTS
from tests.harness import prefork
from tests.harness.postgres import WHY_NOT, find_postgres
from tests.harness.root import ENGINE


def run_chaos(*options: str) -> tuple[int, dict[str, int], str]:
    """The exit code, what it counted, and what it wrote beside that."""
    done = prefork.run("tests.chaos", *options, cwd=ENGINE, env=os.environ)
    counted = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, counted, done.stderr + done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_nothing_is_lost_or_done_twice(database: str) -> None:
    if database == "postgres" and find_postgres() is None:
        pytest.skip(WHY_NOT)
    stops = {"postgres": "1"}.get(database, "0")
    options = ("--database", database, "--kills", "5", "--resumes", "4", "--stops", stops)
    code, counted, printed = run_chaos(*options)
    assert code == 0, printed
    assert (counted["kills"], counted["double resumes"]) == (5, 4)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    code, counted, printed = run_chaos("--fault", fault, "--kills", "2", "--resumes", "0")
    assert code == 1, printed
    assert counted[FAULTS[fault]["found"]] > 0, printed
