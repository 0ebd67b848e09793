"""The pipes to an editor: what is on them, whatever comes in."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from modeshift.editor.transport import prepare_message
from tests.clients.editor.process import AgentProcess, agent_process
from tests.harness.conversation import SECONDS, until
from tests.harness.place import environment

pytestmark = pytest.mark.asyncio(loop_scope="module")
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
STRAY = """
import os, subprocess, threading, time
from modeshift.editor import main as editor

def print_later():
    while not os.path.exists("go"):
        time.sleep(0.02)
    print("stray")
    os.write(1, b"stray\\n")
    subprocess.run(["echo", "stray"])

threading.Thread(target=print_later, daemon=True).start()
editor.main()
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AgentProcess]:
    folder = tmp_path_factory.mktemp("editor")
    async with agent_process(environment(folder), folder / "log.txt") as process:
        yield process


async def ask(process: AgentProcess, message: bytes | dict[str, Any]) -> dict[str, Any]:
    """The response to a line; what comes before it is not one."""
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    process.stdin.write(line + b"\n")
    async with asyncio.timeout(SECONDS):
        while True:
            answer = dict(json.loads(await process.stdout.readline()))
            if "id" in answer:
                return answer


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 3, "method": method, "params": params}


async def test_the_version_is_one(process: AgentProcess) -> None:
    result = (await ask(process, request("initialize", protocolVersion=65535)))["result"]
    assert result["protocolVersion"] == 1
    assert result["agentCapabilities"] == {
        "loadSession": True,
        "mcpCapabilities": {"http": True},
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "sessionCapabilities": {name: {} for name in ("list", "resume", "close", "delete", "fork")},
    }
    assert result["agentInfo"]["name"] == "modeshift"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'{"id": 3, "method": "session/new", "params": {"cwd": NaN}}', -32602),
        (b"42", -32600),
        (b"[]", -32600),
        (json.dumps([INITIALIZE]).encode(), -32600),
        (b"{}", -32600),
        (b'{"method": {}, "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": []}', -32600),
        (b'{"id": 3, "method": "session/new", "params": {"cwd": "/x/\\ud800"}}', -32602),
        (b'{"id": 3, "method": "no/such"}', -32601),
        (b'{"id": 3, "method": "$/sparkle"}', -32601),
        (b'{"id": 3, "method": "session/prompt", "params": {}}', -32602),
        (b'{"id": 3, "method": "session/resume", "params": {"mcp_servers": 4}}', -32602),
        (b'{"id": 3, "method": "session/delete", "params": {}}', -32602),
        (b'{"id": 3, "method": "_no/such"}', -32601),
    ],
)
async def test_garbage_is_answered(process: AgentProcess, line: bytes, code: int) -> None:
    answer = await ask(process, line)
    assert answer["error"]["code"] == code
    assert answer["error"]["data"]["details"].startswith(answer["error"]["message"])
    assert answer["id"] == (3 if code != -32700 and b'"id": 3' in line else None)


async def test_what_needs_no_answer_gets_none(process: AgentProcess) -> None:
    for line in (
        b'{"id": [1], "result": {}}',
        b'{"id": 5, "error": "x"}',
        b'{"id": 5, "result": {}, "params": [1]}',
        b'{"id": 5, "result": {}}',
        b'{"method": "$/cancel_request", "params": {"id": 1}}',
        b'{"method": "session/cancel", "params": {}}',
        b'{"method": "no/such/notification"}',
        b"",
        b"   ",
    ):
        process.stdin.write(line + b"\n")
    assert "result" in await ask(process, INITIALIZE)


async def test_no_part_of_a_request_is_lost_or_replaced(
    process: AgentProcess, workspace: Path
) -> None:
    """The SDK spreads ``_meta`` over the parameters, and leaves out what it cannot parse."""
    for name in ("_meta", "field_meta"):
        meta = {name: {"cwd": "/", "sparkle": 1}}
        new = request("session/new", cwd=str(workspace), mcpServers=[], **meta)
        opened = (await ask(process, new))["result"]
        listing = request("session/list", **{name: {"cwd": "/no/such/folder"}})
        assert (await ask(process, listing))["result"]["sessions"][0]["cwd"] == str(workspace)
    block = {"type": "text", "text": "hello"}
    for blocks in ([block, 4], [{**block, "type": "sparkle"}, block]):
        prompt = request("session/prompt", sessionId=opened["sessionId"], prompt=blocks)
        assert (await ask(process, prompt))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("error", "kept"),
    [({"code": 1, "message": "no"}, "error"), ("no", "error"), (None, "result")],
)
async def test_a_response_is_a_result_or_an_error(error: Any, kept: str) -> None:
    """The SDK looks at the result first, and expects an object."""
    message = prepare_message({"id": 7, "error": error, "result": {"x": "yes"}}) or {}
    assert message.keys() == {"id", kept}
    assert isinstance(message[kept], dict)


async def test_what_is_printed_does_not_reach_the_editor(tmp_path: Path) -> None:
    (tmp_path / "stray.py").write_text(STRAY)
    log = tmp_path / "log.txt"
    async with agent_process(environment(tmp_path), log, "stray", tmp_path) as process:
        assert "result" in await ask(process, INITIALIZE)
        (tmp_path / "go").touch()
        await until(lambda: log.read_text().count("stray") >= 2)
        assert "result" in await ask(process, INITIALIZE)
    assert log.read_text().count("stray") == 3
