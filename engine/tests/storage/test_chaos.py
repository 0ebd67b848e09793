"""The short form of ``make chaos``."""

import json
import os
import subprocess
import sys

import pytest

from tests.harness.modes import MODES
from tests.harness.postgres import find_postgres
from tests.harness.root import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_nothing_is_lost_or_done_twice(database: str) -> None:
    if database == "postgres" and find_postgres() is None:
        pytest.skip("Postgres is not installed (apt install postgresql)")
    stops = {"postgres": "1"}.get(database, "0")
    options = ("--database", database, "--kills", "5", "--resumes", "4", "--stops", stops)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *options],
        cwd=ROOT / "engine",
        env={**os.environ, "PYTHONPATH": paths, "MODES_FOLDER": str(MODES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    counted = json.loads(done.stdout)
    assert (counted["kills"], counted["double resumes"]) == (5, 4)
