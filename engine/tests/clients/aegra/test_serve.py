"""``make serve`` says what it lacks."""

from pathlib import Path

import pytest

from tests.harness import prefork
from tests.harness.place import environment
from tests.harness.root import ROOT

URL = "postgresql://nobody@127.0.0.1/nothing"


@pytest.mark.parametrize(
    ("url", "workers", "text"),
    [
        ("", "2", "make serve keeps threads in Postgres: set DATABASE_URL"),
        (URL, "two", "WORKERS='two' is no number of processes; give 1 or more"),
        (URL, "0", "WORKERS='0' is no number of processes; give 1 or more"),
        (URL, "2", "Aegra is not installed here: run make serve, which makes .venv-serve"),
    ],
)
def test_it_does_not_start(url: str, workers: str, text: str, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=url)
    done = prefork.run("modeshift", "serve", "--workers", workers, env=env, cwd=ROOT)
    assert done.returncode == 1
    assert text in done.stderr
