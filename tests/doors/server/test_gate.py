"""The door of the real dev server: no web page gets in that the user did not allow."""

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph_sdk import get_client

from doors.server.routes import is_known
from graph.settings import load_settings
from modes.errors import ConfigurationError
from tests.harness.conversation import APPROVE
from tests.harness.server import Server, Thread, running

STUDIO = "https://smith.langchain.com"
EVIL = "http://evil.example"
Answer = tuple[int, str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("clone"), DEFAULT_MODE="code") as server:
        yield server


def ask(server: Server, method: str, path: str, body: str | None = None, **given: str) -> Answer:
    """One request as a browser would send it; headers by their names with ``_`` for ``-``."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in given.items()}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.fixture(scope="module")
def waiting(server: Server) -> str:
    """The id of a thread in which a call waits for its approval."""

    async def prepare() -> str:
        async with server.client as client:
            thread = await Thread.new(client)
            await thread.say("write pwned: x")
            assert await thread.waiting()
            return thread.id

    return asyncio.run(prepare())


def approval() -> str:
    return json.dumps({"assistant_id": "agent", "command": {"resume": {"decisions": [APPROVE]}}})


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "text/plain"},
        {"Content_Type": "text/plain;charset=UTF-8", "Origin": EVIL},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {},
        {"Content_Type": "application/json", "Origin": EVIL},
        {"Content_Type": "application/json", "Origin": "null"},
        {"Content_Type": "application/json", "Origin": ""},
        {"Content_Type": "application/json", "Origin": f"{STUDIO}.evil.example"},
        {"Content_Type": "application/json", "Origin": f"{STUDIO}:8443"},
        {"Content_Type": "application/json", "Origin": "http://smith.langchain.com"},
        {"Content_Type": "application/json", "Origin": "http://localhost:5000"},
        {"Content_Type": "application/json", "Origin": STUDIO.upper()},
        {"Content_Type": "application/json", "Sec_Fetch_Site": "cross-site"},
        {"Content_Type": "application/json", "Sec_Fetch_Site": "same-site"},
        {"Content_Type": "application/json", "Host": "evil.example"},
        {"Content_Type": "application/json", "Host": "evil.example:2024"},
        {"Content_Type": "application/json", "Host": "127.0.0.1.evil.example:2024"},
        {"Content_Type": "application/json", "Host": "127.0.0.1@evil.example"},
        {"Content_Type": "application/json", "Host": "evil.example#@127.0.0.1:2024"},
        {"Content_Type": "application/json", "Host": "localhost:x"},
        {
            "Content_Type": "application/json",
            "Host": "evil.example",
            "Origin": "http://evil.example",
        },
        {"Content_Type": "application/json", "Host": "0.0.0.0:2024"},
        {"Content_Type": "application/json", "Host": "[::ffff:7f00:1]:2024"},
    ],
)
def test_what_a_web_page_sends_is_refused(
    server: Server, waiting: str, headers: dict[str, str]
) -> None:
    for path in (f"/threads/{waiting}/runs", f"/threads/{waiting}/runs/wait", "/runs/wait"):
        status, text = ask(server, "POST", path, approval(), **headers)
        assert status == 403, text
        assert "refused: " in text
    assert not (server.workspace / "pwned").exists()


@pytest.mark.parametrize("path", ["/ok", "/info", "/docs", "/threads/x/state", "/mcp", "/nothing"])
def test_no_page_looks_in(server: Server, path: str) -> None:
    for headers in (
        {"Origin": EVIL},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
    ):
        assert ask(server, "GET", path, **headers)[0] == 403
    preflight = {"Origin": EVIL, "Access_Control_Request_Method": "POST"}
    assert ask(server, "OPTIONS", path, **preflight)[0] == 403


def test_a_host_given_twice(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        raw.sendall(b"GET /ok HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(100).split()[1] in (b"400", b"403")


@pytest.mark.parametrize("path", ["/threads/{}/stream/events", "/threads/{}/runs/x/protocol"])
@pytest.mark.parametrize("headers", [f"Origin: {EVIL}", "Host: evil.example", "Accept: */*"])
def test_nobody_opens_a_socket(server: Server, waiting: str, path: str, headers: str) -> None:
    host = "" if headers.startswith("Host") else f"Host: 127.0.0.1:{server.port}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        raw.sendall(
            f"GET {path.format(waiting)} HTTP/1.1\r\n{host}{headers}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n".encode()
        )
        assert raw.recv(100).split()[1] == b"403"


async def test_whom_the_user_allows_goes_on_working(server: Server, waiting: str) -> None:
    path = f"/threads/{waiting}/runs/wait"
    json_type = {"Content_Type": "application/json; charset=utf-8"}
    reject = json.dumps({"assistant_id": "agent", "input": {"messages": []}})
    for headers in (
        {"Origin": STUDIO},
        {"Origin": STUDIO, "Sec_Fetch_Site": "cross-site"},
        {"Origin": "http://localhost:3000"},
        {"Origin": server.url, "Sec_Fetch_Site": "same-origin"},
        {"Host": f"localhost:{server.port}"},
        {"Host": "localhost"},
        {"Host": f"[::1]:{server.port}"},
        {},
    ):
        assert ask(server, "POST", path, reject, **json_type, **headers)[0] == 200, headers
    for headers in ({}, {"Sec_Fetch_Site": "none"}, {"Origin": STUDIO}):
        assert ask(server, "GET", "/docs", **headers)[0] == 200
    preflight = {
        "Origin": STUDIO,
        "Access_Control_Request_Method": "POST",
    }
    assert ask(server, "OPTIONS", path, **preflight)[0] == 200
    async with get_client(url=f"http://localhost:{server.port}") as client:
        assert await client.assistants.search()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/internal/truncate"),
        ("GET", "/internal/debug/thread/{}"),
        ("GET", "/deploy"),
        ("POST", "/deploy"),
        ("GET", "/deploy/x/stream"),
        ("GET", "/metrics"),
        ("GET", "/ui/agent"),
        ("POST", "/mcp"),
        ("POST", "/a2a/agent"),
        # The server's router takes these for the path without the end.
        ("GET", "/ok%0A"),
        ("POST", "/internal/truncate%0A"),
        ("GET", "/internal/debug/thread/{}%0a"),
        ("GET", "/threads/{}/state%0A"),
        ("POST", "/threads/{}/runs%0A"),
        ("POST", "/threads/{}/runs/wait%0A"),
        ("POST", "/threads/{}%0A/runs"),
        ("POST", "/runs/wait%0A"),
        ("POST", "//threads/{}/runs"),
        ("POST", "/threads/{}/runs/"),
        ("POST", "/threads/{};x/runs"),
        ("POST", "/threads/{}%00/runs"),
        ("POST", "/threads/{}%E2%80%A8/runs"),
        ("post", "/threads/{}/runs"),
        ("PUT", "/threads/{}/runs"),
    ],
)
def test_what_is_not_on_the_list(server: Server, waiting: str, method: str, path: str) -> None:
    given = path.format(waiting)
    status, text = ask(server, method, given, approval(), Content_Type="application/json")
    assert status in (400, 404), text
    assert waiting not in text or "refused: " in text
    status, text = ask(server, "GET", f"/threads/{waiting}/state")
    assert '"write_file"' in text
    assert not (server.workspace / "pwned").exists()


NOT_LET_IN = {
    "/internal/truncate",
    "/internal/debug/thread/{thread_id}",
    "/deploy",
    "/deploy/{operation_id}/stream",
    "/metrics",
    "/ui",
    "/ui/{graph_id}",
    "/threads/{thread_id}/storage",
    "/threads/{thread_id}/stream/events",
    "/threads/{thread_id}/commands",
    "/a2a/{assistant_id}/",
    "/a2a/{assistant_id}/.well-known/agent.json",
}
"""What the installed server can mount, and nobody gets."""

ROUTES = """
from langgraph_api.server import app

def show(routes):
    for route in routes:
        if route.path:
            print(route.path, *(getattr(route, "methods", None) or ["WEBSOCKET"]))
        else:
            show(route.routes)

show(app.routes)
"""


def test_each_route_of_the_server_is_let_in_or_known_to_be_refused(tmp_path: Path) -> None:
    """Where this fails, a new version has a new route: add it to one of the two lists."""
    names = ("MIGRATIONS_PATH", "DATABASE_URI", "REDIS_URI", "LANGGRAPH_RUNTIME_EDITION")
    given = dict(zip(names, ("__inmem", ":memory:", "fake", "inmem"), strict=True))
    listing = subprocess.run(
        [sys.executable, "-c", ROUTES],
        cwd=tmp_path,
        env={**os.environ, **given, "FF_V2_EVENT_STREAMING": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    routes = [line.split() for line in listing.stdout.splitlines()]
    for path, *methods in routes:
        fields = {name: str(UUID(int=1)) for name in re.findall(r"\{(\w+)\}", path)}
        concrete = path.format(**fields)
        for method in methods:
            assert is_known(method, concrete) != (path in NOT_LET_IN), f"{method} {path}"
    assert {path for path, *_ in routes} >= NOT_LET_IN


def test_another_page_can_be_allowed(tmp_path: Path) -> None:
    with running(tmp_path, ALLOWED_ORIGINS="http://chat.example, http://localhost:3000") as server:
        assert ask(server, "GET", "/ok", Origin="http://chat.example")[0] == 200
        assert ask(server, "GET", "/ok", Origin=STUDIO)[0] == 403


@pytest.mark.parametrize(
    "given", ["*", "localhost:3000", "http://a/", "ftp://a", "null", "http://"]
)
def test_what_is_no_origin(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED_ORIGINS", given)
    with pytest.raises(ConfigurationError, match="ALLOWED_ORIGINS"):
        load_settings(tmp_path / "none")


def test_nothing_is_allowed_by_default_that_is_not_said() -> None:
    origins: Any = load_settings().origins
    assert origins == (STUDIO, "http://localhost:3000", "http://127.0.0.1:3000")


def test_the_second_protocol_is_off(server: Server, waiting: str) -> None:
    """Its answers would wait for a run that is under way, and approve what comes next."""
    decision = {"decisions": [APPROVE]}
    command = {"id": 1, "method": "run.start", "params": {"assistant_id": "agent"}}
    command["params"] |= {"input": decision}  # type: ignore[operator]
    for path in (f"/threads/{waiting}/commands", f"/threads/{waiting}/stream/events"):
        status, _ = ask(server, "POST", path, json.dumps(command), content_type="application/json")
        assert status in (404, 405)
    assert not (server.workspace / "pwned").exists()


ROLLBACK = {"assistant_id": "agent", "input": {"messages": []}, "multitask_strategy": "rollback"}
CRON = {**ROLLBACK, "schedule": "0 0 1 1 *"}


def test_nothing_is_rolled_back(server: Server, waiting: str) -> None:
    """The server deletes a run's checkpoints then; it cannot, and leaves a thread that hangs."""
    thread, run = f"/threads/{waiting}", UUID(int=1)

    def post(path: str, body: Any, method: str = "POST") -> Answer:
        return ask(server, method, path, json.dumps(body), Content_Type="application/json")

    kept = {**CRON, "multitask_strategy": "interrupt"}
    cron = json.loads(post("/runs/crons", kept)[1])["cron_id"]
    for status, text in (
        *(post(f"{thread}/runs{end}", ROLLBACK) for end in ("", "/wait", "/stream")),
        *(post(f"/runs{end}", ROLLBACK) for end in ("", "/wait", "/stream")),
        post("/runs/batch", [ROLLBACK]),
        post("/runs/crons", CRON),
        post(f"{thread}/runs/crons", CRON),
        post(f"/runs/crons/{cron}", {"multitask_strategy": "rollback"}, "PATCH"),
        post(f"{thread}/runs/{run}/cancel?action=rollback", {}),
        post("/runs/cancel?action=rollback", {"thread_id": waiting, "run_ids": [str(run)]}),
        post("/runs/cancel?action=rollback", {"status": "all"}),
    ):
        assert (status, "use 'interrupt'" in text) == (422, True), text
    ask(server, "DELETE", f"/runs/crons/{cron}")


@pytest.mark.parametrize(
    "body",
    [
        '{"a":' + "[" * 1010 + "]" * 1010 + "}",
        "[" * 100_000 + "]" * 100_000,
        "{",
        "",
        "[]",
        "null",
        '{"a": 1}',
    ],
)
def test_bodies_that_are_no_run(server: Server, waiting: str, body: str) -> None:
    path = f"/threads/{waiting}/runs"
    status, _ = ask(server, "POST", path, body, content_type="application/json")
    assert 400 <= status < 600
    assert ask(server, "GET", "/ok")[0] == 200
