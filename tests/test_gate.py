"""The door of the real dev server: no web page gets in that the user did not allow."""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from graph.settings import load_settings
from modes.errors import ConfigurationError
from tests.conversation import APPROVE
from tests.server import Server, Thread, running

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
@pytest.mark.parametrize("headers", [f"Origin: {EVIL}", "Host: evil.example"])
def test_no_page_opens_a_socket(server: Server, waiting: str, path: str, headers: str) -> None:
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
