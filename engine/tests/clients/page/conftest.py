"""One server, one scripted model and one browser for all files."""

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from tests.clients.page.browser import PROBLEM, Person, Script, follow, opened
from tests.harness.server import Server, running
from tests.provider.server import Handler, listening, serving

MODES = """\
customModes:
  - slug: scripted
    name: Scripted
    roleDefinition: You say what the script says.
    groups: [read, edit]
    model: anthropic:claude-sonnet-5-5
  - slug: planned
    name: Planned
    roleDefinition: You do what the plan says.
    groups: [read, edit]
    enterFrom: [{from: architect, when: plan_written}]
  - slug: planner
    name: Planner
    roleDefinition: You plan.
    groups: [read, edit]
    model: anthropic:claude-sonnet-5-5
    switches: [{to: code, plan: true}, "*"]
  - slug: sealed
    name: Sealed
    roleDefinition: You are entered by a person alone.
    groups: [read]
    enterFrom: []
  - slug: evil
    name: "<img src=x onerror=window.ran=1> \\u05d0"
    description: "<script>window.ran=2</script>"
    roleDefinition: You are not nice.
    groups: [read]
  - slug: broken
    name: Broken
    groups: [everything]
"""
PICTURE = "R0lGODdhAQABAIAAAP///////ywAAAAAAQABAAACAkQBADs="
"""Of one pixel."""
EVIL_SCHEMA = {
    "type": "object",
    "properties": {"zone": {"type": "string", "description": "<img src=x onerror=window.ran=8>"}},
}


class McpServer(Handler):
    """An MCP server with one tool, the least that one is."""

    def do_POST(self) -> None:  # noqa: N802  # as http.server calls it
        message = self.read_body()
        answers = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stub", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "set", "inputSchema": EVIL_SCHEMA}]},
            "tools/call": {"content": [{"type": "text", "text": f"{message.get('params')}"}]},
        }
        if "a picture" in str(message.get("params")):
            picture = {"type": "image", "data": PICTURE, "mimeType": "image/gif"}
            answers["tools/call"]["content"] = [picture]
        result = answers.get(message["method"])
        error = {"code": -32601, "message": "there is no such method"}
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        answer |= {"error": error} if result is None else {"result": result}
        content = json.dumps(answer).encode() if "id" in message else b""
        kind = {"content-type": "application/json", "content-length": str(len(content))}
        self.begin(200 if content else 202, kind)
        self.wfile.write(content)


@pytest.fixture(scope="package")
def script() -> Script:
    """What the server's model answers; to be added to."""
    return {}


def open_browser() -> Iterator[Browser]:
    """While one is open, no coroutine can be run: no test of this package is one."""
    if PROBLEM:
        pytest.skip(PROBLEM)
    with opened() as browser:
        yield browser


browser = pytest.fixture(scope="package", name="browser")(open_browser)


@pytest.fixture(scope="package")
def server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, script: Script
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clone")
    (folder / "home").mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    mcp = ThreadingHTTPServer(("127.0.0.1", 0), McpServer)
    entry = {"type": "http", "url": f"http://127.0.0.1:{mcp.server_port}/mcp"}
    (folder / "home/mcp.json").write_text(json.dumps({"mcpServers": {"remote": entry}}))
    with (
        listening(mcp),
        serving(follow(script)) as provider,
        running(folder, **provider.settings) as server,
    ):
        yield server


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    for file in server.workspace.iterdir() if server.workspace.exists() else ():
        file.unlink()
    person = Person(browser, server.url).go()
    yield person
    person.check()
    person.close()
