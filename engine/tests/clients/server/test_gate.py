"""The gate of the real dev server: no web page gets in that the user did not allow."""

import asyncio
import http.client
import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from modeshift.server.gate import Gate, is_known
from tests.clients.conftest import STUDIO
from tests.harness import prefork
from tests.harness.conversation import APPROVE
from tests.harness.root import ENGINE
from tests.harness.server import Server, Thread

EVIL = "http://evil.example"
Answer = tuple[int, str]


def ask(server: Server, method: str, path: str, body: str | None = None, **given: str) -> Answer:
    """One request as a browser would send it; headers by their names with ``_`` for ``-``."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
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
            await thread.say("write pwned: x", mode="code")
            assert await thread.waiting()
            return thread.id

    return asyncio.run(prepare())


APPROVAL = json.dumps({"assistant_id": "agent", "command": {"resume": {"decisions": [APPROVE]}}})
SITES = ("http://smith.langchain.com", f"{STUDIO}.evil.example", f"{STUDIO}:8443", STUDIO.upper())
HOSTS = (
    *("evil.example:2024", "127.0.0.1.evil.example:2024", "127.0.0.1@evil.example"),
    *("evil.example#@127.0.0.1:2024", "localhost:x", "0.0.0.0:2024", "[::ffff:7f00:1]:2024"),
)
FOREIGN_HEADERS: list[dict[str, str]] = [
    *({"Origin": origin} for origin in (EVIL, "null", "", *SITES)),
    *({"Sec_Fetch_Site": site} for site in ("cross-site", "same-site")),
    *({"Host": host} for host in HOSTS),
]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content_Type": "text/plain"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        *({"Content_Type": "application/json", **headers} for headers in FOREIGN_HEADERS),
    ],
)
def test_what_a_web_page_sends_is_refused(
    server: Server, waiting: str, headers: dict[str, str]
) -> None:
    for path in (f"/threads/{waiting}/runs", f"/threads/{waiting}/runs/wait", "/runs/wait"):
        status, text = ask(server, "POST", path, APPROVAL, **headers)
        assert status == 403, text
        assert "refused: " in text
    assert not (server.workspace / "pwned").exists()


def test_a_foreign_page_cannot_read_anything(server: Server) -> None:
    preflight = {"Origin": EVIL, "Access_Control_Request_Method": "POST"}
    for path in ("/ok", "/info", "/docs", "/threads/x/state", "/mcp", "/nothing"):
        for headers in ({"Origin": EVIL}, {"Sec_Fetch_Site": "cross-site"}, {"Host": EVIL[7:]}):
            assert ask(server, "GET", path, **headers)[0] == 403
        assert ask(server, "OPTIONS", path, **preflight)[0] == 403


def test_allowed_pages_and_local_clients_get_in(server: Server, waiting: str) -> None:
    path = f"/threads/{waiting}/history"
    json_type = {"Content_Type": "application/json; charset=utf-8"}
    for headers in (
        {"Origin": STUDIO},
        {"Origin": STUDIO, "Sec_Fetch_Site": "cross-site"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://chat.example"},
        {"Origin": server.url, "Sec_Fetch_Site": "same-origin"},
        {"Host": f"localhost:{server.port}"},
        {"Host": "localhost"},
        {"Host": f"[::1]:{server.port}"},
        {},
    ):
        assert ask(server, "POST", path, "{}", **json_type, **headers)[0] == 200, headers
    for headers in ({}, {"Sec_Fetch_Site": "none"}, {"Origin": STUDIO}):
        assert ask(server, "GET", "/docs", **headers)[0] == 200
    preflight = {"Origin": STUDIO, "Access_Control_Request_Method": "POST"}
    assert ask(server, "OPTIONS", path, **preflight)[0] == 200


REFUSED_ROUTES = """
    POST /internal/truncate
    GET /internal/debug/thread/{}
    POST /deploy
    GET /ui/agent
    POST /mcp
    POST /a2a/agent
    POST /threads/{}/commands
    POST /threads/{}/stream/events
    GET /ok%0A
    GET /internal/debug/thread/{}%0a
    POST /threads/{}/runs/wait%0A
    POST /threads/{}%0A/runs
    POST //threads/{}/runs
    POST /threads/{}/runs/
    POST /threads/{};x/runs
    POST /threads/{}%00/runs
    POST /threads/{}%E2%80%A8/runs
    post /threads/{}/runs
    PUT /threads/{}/runs
    PATCH /threads/{1}/mode
    PATCH /threads/{2}/mode
"""
"""The server's router takes a path that ends in %0A for the one without it, an id in any form."""


@pytest.mark.parametrize("route", REFUSED_ROUTES.strip().splitlines())
def test_a_route_that_is_not_on_the_list_is_refused(
    server: Server, waiting: str, route: str
) -> None:
    method, path = route.format(waiting, waiting.upper(), waiting.replace("-", "")).split()
    status, text = ask(server, method, path, APPROVAL, Content_Type="application/json")
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
    "/ui",
    "/ui/{graph_id}",
    "/threads/{thread_id}/storage",
    "/threads/{thread_id}/stream/events",
    "/threads/{thread_id}/commands",
    "/mcp",
    "/.well-known/agent-card.json",
    "/a2a/{assistant_id}",
    "/a2a/{assistant_id}/",
    "/a2a/{assistant_id}/.well-known/agent.json",
    "/a2a/{assistant_id}/.well-known/agent-card.json",
}
"""Routes of the installed server that are refused."""

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


@pytest.mark.slow
def test_each_route_of_the_server_is_let_in_or_known_to_be_refused(tmp_path: Path) -> None:
    """Where this fails, a new version has a new route: add it to one of the two lists."""
    names = ("MIGRATIONS_PATH", "DATABASE_URI", "REDIS_URI", "LANGGRAPH_RUNTIME_EDITION")
    env = dict(zip(names, ("__inmem", ":memory:", "fake", "inmem"), strict=True))
    (tmp_path / "routes.py").write_text(ROUTES)
    listing = prefork.run(
        "routes", env={**os.environ, **env, "FF_V2_EVENT_STREAMING": "true"}, cwd=tmp_path
    )
    routes = [line.split() for line in listing.stdout.splitlines()]
    for path, *methods in routes:
        fields = {name: str(UUID(int=1)) for name in re.findall(r"\{(\w+)\}", path)}
        concrete = path.format(**fields)
        for method in methods:
            assert is_known(method, concrete) != (path in NOT_LET_IN), f"{method} {path}"
    assert {path for path, *_ in routes} >= NOT_LET_IN


ROLLBACK = {"assistant_id": "agent", "input": {"messages": []}, "multitask_strategy": "rollback"}
CRON = {**ROLLBACK, "schedule": "0 0 1 1 *"}


def test_a_rollback_is_refused(server: Server, waiting: str) -> None:
    """The server would delete the run's checkpoints, cannot, and leave a thread that hangs."""
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


@pytest.mark.parametrize("body", ['{"a":' + "[" * 1010 + "]" * 1010 + "}", "{", "", "[]", "null"])
def test_a_body_that_is_not_a_run_is_refused(server: Server, waiting: str, body: str) -> None:
    path = f"/threads/{waiting}/runs"
    status, _ = ask(server, "POST", path, body, content_type="application/json")
    assert 400 <= status < 500
    assert ask(server, "GET", "/ok")[0] == 200


def get_page(server: Server, path: str = "/", **headers: str) -> tuple[str, str, str]:
    """Type, content security policy, text."""
    request = urllib.request.Request(f"{server.url}{path}", headers=headers)
    with urllib.request.urlopen(request) as answer:
        policy = answer.headers.get("Content-Security-Policy", "")
        return answer.headers["Content-Type"], policy, answer.read().decode()


PAGE = ENGINE / "modeshift/page"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_a_browser_lands_on_the_page(server: Server) -> None:
    kind, policy, text = get_page(server, Accept=BROWSER)
    assert kind.startswith("text/html")
    rules = {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"}
    assert rules <= set(policy.split("; "))
    assert not re.search(r"(?i)<script>|<iframe|style=|\bon\w+=|https?:", text)
    files = {f"/app/{file.name}" for file in PAGE.iterdir()} - {"/app/index.html"}
    assert files == set(re.findall(r'(?:href|src)="(/.*?)"', text)), "to load side by side"
    for file in files:
        assert get_page(server, file)[1] == policy
    assert ask(server, "HEAD", "/app", Accept=BROWSER) == (200, "")
    for accept in ("*/*", "application/json", ""):
        kind, _, text = get_page(server, Accept=accept)
        assert (kind, json.loads(text)["ok"]) == ("application/json", True)
    assert get_page(server, "/ok", Accept=BROWSER)[0] == "application/json"
    for headers in FOREIGN_HEADERS:
        for path in ("/", "/app", "/app/main.js"):
            assert ask(server, "GET", path, Accept=BROWSER, **headers)[0] == 403
    for path in ("/app/", "/app/../page.py", "/app/index.html", "/app/none.js", "/app/__init__.py"):
        assert ask(server, "GET", path)[0] == 404


def test_each_refusal_is_a_line_that_names_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    client = TestClient(Gate(PlainTextResponse("let in")), base_url="http://localhost")
    client.headers["Authorization"] = "Bearer secret"
    for path, headers, name in (
        ("/ok?token=secret", {"Origin": EVIL}, "ALLOWED_ORIGINS"),
        ("/ok", {"Origin": "http://\x1b[2J\x9b" + "x" * 5000}, "ALLOWED_ORIGINS"),
        ("/ok", {"Host": "x" * 5000}, "LISTEN"),
        ("/a%0D%0Ab%E2%80%AE" + "y" * 5000, {}, "modeshift/server/gate.py"),
    ):
        caplog.clear()
        encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        assert client.get(path, headers=encoded).status_code in (403, 404)
        (line,) = [record.getMessage() for record in caplog.records if record.name == "modeshift"]
        assert name in line
        assert line.isprintable()
        assert len(line) < 450
        assert "secret" not in line
    for _ in range(50):
        client.get("/", headers={"Host": "evil.example"})
    assert len([record for record in caplog.records if record.name == "modeshift"]) < 25
