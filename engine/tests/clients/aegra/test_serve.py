"""``make serve`` says what it lacks."""

from pathlib import Path

import httpx
import pytest

from modeshift.commands.serve import OURS, divide_connections
from modeshift.storage.postgres import MAX_CONNECTIONS
from tests.harness import prefork
from tests.harness.aegra import serving
from tests.harness.place import environment
from tests.harness.postgres import Postgres, find_postgres, run_postgres
from tests.harness.root import ROOT
from tests.harness.server import free_port

URL = "postgresql://nobody:secret@127.0.0.1:9/nothing"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"DATABASE_URL": ""}, "make serve keeps threads in Postgres: set DATABASE_URL"),
        ({"WORKERS": "two"}, "WORKERS='two' is no number of processes; give 1 or more"),
        ({"WORKERS": "0"}, "WORKERS='0' is no number of processes; give 1 or more"),
        ({"PORT": "abc"}, "PORT='abc' is no port; give a number up to 65535"),
        ({}, "Postgres at 127.0.0.1/nothing cannot be used now: connection failed: "),
    ],
)
def test_it_does_not_start(settings: dict[str, str], text: str, tmp_path: Path) -> None:
    """And says so in one line, before make sets up an environment for it."""
    given = {"DATABASE_URL": URL, "PORT": str(free_port()), **settings}
    env = environment(tmp_path, ONLY_CHECK="1", **given)
    done = prefork.run("modeshift", "serve", env=env, cwd=ROOT)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"modeshift: {text}")


def test_what_could_start_wants_aegra(postgres: Postgres, tmp_path: Path) -> None:
    url, port = postgres.make_database(), str(free_port())
    env = environment(tmp_path, DATABASE_URL=url, PORT=port)
    only_check = {**env, "ONLY_CHECK": "1"}
    assert prefork.run("modeshift", "serve", env=only_check, cwd=ROOT).returncode == 0
    done = prefork.run("modeshift", "serve", env=env, cwd=ROOT)
    assert "Aegra is not installed here: run make serve, which makes .venv-serve" in done.stderr


ROUTES = {
    "GET /threads/{}": None,
    "GET /threads/{}/state": None,
    "GET /threads/{}/mode": None,
    "PATCH /threads/{}/mode": {"mode": "code"},
    "POST /threads": {},
    "POST /threads/search": {},
    "POST /threads/{}/runs/stream": {"assistant_id": "agent", "input": {"messages": []}},
    "POST /modeshift/threads": {},
    "GET /metrics": None,
}


@pytest.mark.slow
def test_without_its_database_each_route_says_so(is_there: None, tmp_path: Path) -> None:
    """And works again with it; on one connection."""
    programs = find_postgres()
    if programs is None:
        pytest.skip("Postgres is not installed (apt install postgresql)")
    with run_postgres(programs) as postgres:
        url = postgres.make_database()
        with (
            serving(tmp_path, url, workers=1, DATABASE_TIMEOUT="2") as server,
            httpx.Client(base_url=server.url, timeout=120) as http,
        ):
            thread = http.post("/threads", json={}).json()["thread_id"]
            postgres.stop()
            try:
                for route, body in ROUTES.items():
                    method, path = route.format(thread).split()
                    answer = http.request(method, path, json=body)
                    assert answer.status_code == 503, route
                    assert answer.json()["detail"].startswith("Postgres at 127.0.0.1/t"), route
            finally:
                postgres.start()
            assert http.get(f"/threads/{thread}").status_code == 200


@pytest.mark.parametrize("processes", range(1, 9))
def test_all_processes_together_leave_some_of_postgres_connections(processes: int) -> None:
    assert OURS == 2 * MAX_CONNECTIONS  # the journal's and the server's
    sizes = {name: int(size) for name, size in divide_connections(processes).items()}
    assert min(sizes["SQLALCHEMY_POOL_SIZE"], sizes["LANGGRAPH_MAX_POOL_SIZE"]) > 0
    aegra = sizes["SQLALCHEMY_POOL_SIZE"] + sizes["SQLALCHEMY_MAX_OVERFLOW"]
    assert processes * (OURS + aegra + sizes["LANGGRAPH_MAX_POOL_SIZE"]) < 97
