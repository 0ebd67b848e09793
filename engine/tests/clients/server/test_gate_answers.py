"""What ``Gate`` says to each kind of request, in this process."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Scope

from modeshift.observing import Report, listeners
from modeshift.server.gate import Gate, RefusalLog
from modeshift.testing.plugin import Snapshot

ID = "01234567-89ab-cdef-0123-456789abcdef"
PAGE = "https://page.example"
FOREIGN, OWN = {"Origin": "http://evil.example"}, {"Origin": "http://localhost"}
CHUNKED = {"Transfer-Encoding": "chunked"}
REQUESTS: list[tuple[str, str, dict[str, str]]] = [
    ("GET", "/ok", {}),
    ("HEAD", "/ok", {}),
    ("POST", "/ok", {}),
    ("OPTIONS", "/ok", {}),
    ("OPTIONS", "/nothing", {}),
    ("GET", f"/threads/{ID}", {}),
    ("GET", f"/threads/{ID}x", {}),
    ("GET", f"/x/threads/{ID}", {}),
    ("DELETE", f"/threads/{ID}/runs/{ID}", {}),
    ("GET", "/app/main.js", {}),
    ("GET", "/app/mainxjs", {}),
    ("POST", f"/threads/{ID}/commands", {}),
    ("POST", f"/threads/{ID}/stream/events", {}),
    ("GET", "/ok", OWN),
    ("GET", "/ok", {"Origin": PAGE}),
    ("GET", "/ok", FOREIGN),
    ("GET", "/ok", {"Origin": "null"}),
    *(
        ("GET", "/ok", {"Sec-Fetch-Site": site})
        for site in ("cross-site", "same-site", "same-origin", "none")
    ),
    *(
        ("GET", "/ok", {"Host": host})
        for host in ("127.0.0.1:1", "[::1]:1", "localhost:x", "localhost:1x", "evil.example:1", "")
    ),
    *(
        ("POST", "/threads", {"Content-Length": "2", "Content-Type": kind})
        for kind in ("application/json", "Application/JSON ; charset=utf-8", "text/plain", "")
    ),
    ("POST", "/threads", {"Content-Length": "0", "Content-Type": "text/plain"}),
    ("POST", "/threads", {"Content-Length": "2"}),
    ("POST", "/threads", CHUNKED),
    ("POST", "/threads", CHUNKED | {"Content-Type": "application/json"}),
]


async def call(scope: dict[str, Any], **options: Any) -> list[Any]:
    """What is sent to the client; by a server that says that it was reached."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        sent.append("received")
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = PlainTextResponse("reached") if scope["type"] in ("http", "websocket") else reach
    await Gate(app, **options)(scope, receive, send)
    return sent


async def reach(scope: Scope, receive: Any, send: Any) -> None:
    await send(scope["type"])


def test_answers(snapshot: Snapshot) -> None:
    client = TestClient(Gate(PlainTextResponse("reached"), {PAGE}), base_url="http://localhost")
    said = []
    for method, path, headers in REQUESTS:
        answer = client.request(method, path, headers=headers)
        said.append(f"{method} {path} {headers or ''}: {answer.status_code} {answer.text}")
    snapshot("gate.txt", "\n".join(said))


def test_two_hosts_or_pages_are_none() -> None:
    client = TestClient(Gate(PlainTextResponse("reached"), {PAGE}), base_url="http://localhost")
    for name, first in (("Host", "localhost"), ("Host", "localhost:1"), ("Origin", PAGE)):
        for second in (first, "evil.example"):
            headers = [(name, first), (name, second)]
            assert client.get("/ok", headers=headers).status_code == 403


HTTP = {"type": "http", "method": "GET", "path": "/ok", "headers": [], "query_string": b""}
HERE = ("127.0.0.1", 2024)


@pytest.mark.parametrize(
    ("changes", "options", "status"),
    [
        ({"headers": [(b"host", b"localhost")], "server": HERE}, {}, 200),
        ({"server": HERE}, {}, 403),
        ({"server": HERE}, {"has_token": True}, 403),
        ({"server": ("10.0.0.1", 2024)}, {}, 403),
        ({"server": None}, {}, 403),
        ({}, {}, 403),
        ({"server": ("10.0.0.1", 2024)}, {"has_token": True}, 200),
        ({"root_path": "/noauth"}, {}, 200),
        ({"root_path": "/noauth", "path": "/deploy"}, {}, 404),
        ({"root_path": ""}, {}, 403),
    ],
)
async def test_where_it_listens(
    changes: dict[str, Any], options: dict[str, Any], status: int
) -> None:
    first = (await call(HTTP | changes, **options))[0]
    assert first["status"] == status


async def test_other_protocols() -> None:
    """The server's own start passes; a WebSocket is closed, by word and number."""
    assert await call({"type": "lifespan"}) == ["lifespan"]
    scope = {"type": "websocket", "path": "/ok" + "x" * 99, "headers": [], "root_path": "/noauth"}
    received, closed = await call(scope)
    reason = f"no WebSockets are served, so '/ok{'x' * 99}' is not; use the HTTP routes of runs"
    assert received == "received"
    assert closed == {"type": "websocket.close", "code": 1008, "reason": reason[:100]}


def test_few_refusals_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog(most=2, seconds=1000)
    expected = [
        f"refused WebSocket /{'x' * 69}...: not this",
        "refused GET /a: not this",
        "more was refused within 1000 seconds, and is not logged",
    ]
    for scope, known in (
        ({"path": "/" + "x" * 99}, expected[:1]),
        *(({"method": "GET", "path": f"/{name}"}, expected[: 2 + (name > "a")]) for name in "abcd"),
    ):
        log.write(scope, "not\nthis")
        assert [record.getMessage() for record in caplog.records] == known
    assert {(record.name, record.levelname) for record in caplog.records} == {
        ("modeshift", "WARNING")
    }
    caplog.clear()
    log = RefusalLog(most=1, seconds=0)
    for _ in range(3):
        log.write({"path": "/"}, "x")
    assert len(caplog.records) == 3


def test_refusals_are_counted() -> None:
    counted: list[Any] = []

    def listen(kind: str, names: Mapping[str, str], _: Report) -> nullcontext[None]:
        counted.append((kind, names))
        return nullcontext()

    listeners.append(listen)
    try:
        asyncio.run(call(HTTP))
    finally:
        listeners.remove(listen)
    assert counted == [("refusal", {"status": "403"})]
