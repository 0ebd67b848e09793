"""``make serve`` says what it lacks."""

from pathlib import Path

import pytest

from modeshift.commands.serve import OURS, divide_connections
from modeshift.storage.postgres import MAX_CONNECTIONS
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


@pytest.mark.parametrize("processes", range(1, 9))
def test_all_processes_together_leave_some_of_postgres_connections(processes: int) -> None:
    assert OURS == 2 * MAX_CONNECTIONS  # the journal's and the server's
    sizes = {name: int(size) for name, size in divide_connections(processes).items()}
    assert min(sizes["SQLALCHEMY_POOL_SIZE"], sizes["LANGGRAPH_MAX_POOL_SIZE"]) > 0
    aegra = sizes["SQLALCHEMY_POOL_SIZE"] + sizes["SQLALCHEMY_MAX_OVERFLOW"]
    assert processes * (OURS + aegra + sizes["LANGGRAPH_MAX_POOL_SIZE"]) < 97
