"""The pipes to an editor: what is on them, whatever comes in."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast

import pytest

from doors.editor.transport import PipeTransport
from tests.doors.editor.editor import environment
from tests.doors.editor.process import AgentProcess, agent_process
from tests.doors.editor.schema import check
from tests.harness import prefork
from tests.harness.conversation import until

COMMAND = Path(sys.executable).with_name("modeshift-acp")
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
STRAY = """
import os, subprocess, threading
from doors.editor import main as acp_agent

def print_now():
    print("stray")
    os.write(1, b"stray\\n")
    subprocess.run(["echo", "stray"])

threading.Timer(0.5, print_now).start()
acp_agent.main([])
"""


def raw(folder: Path) -> AbstractAsyncContextManager[AgentProcess]:
    return agent_process(environment(folder, {}), folder / "log.txt")


async def asked(process: AgentProcess, line: bytes) -> dict[str, Any]:
    """What is answered to a line."""
    process.stdin.write(line + b"\n")
    async with asyncio.timeout(60):
        return dict(json.loads(await process.stdout.readline()))


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
async def test_the_version_is_one(tmp_path: Path, version: int) -> None:
    async with raw(tmp_path) as process:
        request = {**INITIALIZE, "params": {"protocolVersion": version}}
        answer = await asked(process, json.dumps(request).encode())
    result = answer["result"]
    assert result["protocolVersion"] == 1
    assert result["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
    }
    assert result["agentInfo"]["name"] == "modeshift"


GARBAGE = {
    b"nonsense": -32700,
    b"{": -32700,
    b"\xff\xfe": -32700,
    b"[" * 100_000: -32700,
    b"42": -32600,
    b"null": -32600,
    b'"text"': -32600,
    b"[]": -32600,
    json.dumps([INITIALIZE]).encode(): -32600,
    b"{}": -32600,
    b'{"method": 5, "id": 3}': -32600,
    b'{"method": {}, "id": {}}': -32600,
    b'{"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": []}': -32600,
    b'{"jsonrpc": "2.0", "id": 3, "method": "no/such"}': -32601,
    b'{"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {}}': -32602,
    b'{"id": 3, "method": "session/new", "params": {"cwd": "/' + b"x" * 300 + b'"}}': -32602,
    b'{"id": 3, "method": "session/new", "params": {"cwd": "/x/\\ud800"}}': -32600,
    # What the SDK cannot parse in a list it leaves out, and takes the rest.
    b'{"id": 3, "method": "session/new", "params": {"cwd": "/", "mcpServers": [{}]}}': -32602,
    b'{"id": 3, "method": "session/load", "params": {"cwd": "/", "mcpServers": [4]}}': -32602,
    b'{"id": 3, "method": "session/resume", "params": {"cwd": "/", "mcpServers": 4}}': -32602,
    b'{"id": 3, "method": "session/prompt", "params": {"sessionId": "", "prompt": [4]}}': -32602,
    b'{"id": 3, "method": "session/new", "params": {"cwd": NaN}}': -32700,
    b'{"id": 3, "method": "$/sparkle"}': -32601,
}


async def test_garbage_is_answered_and_the_connection_goes_on(tmp_path: Path) -> None:
    async with raw(tmp_path) as process:
        for line, code in GARBAGE.items():
            answer = await asked(process, line)
            assert answer["error"]["code"] == code, line
            assert answer["id"] == (3 if code != -32700 and b'"id": 3' in line else None)
        for depth in range(900, 1000, 10):
            line = (
                b'{"id": 3, "method": "x", "params": '
                + b'{"\\u0061":' * depth
                + b"1"
                + b"}" * depth
            )
            assert "error" in await asked(process, line + b"}")
        # Answers to questions that nobody has asked, or that are none, are not answered.
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
        answer = await asked(process, json.dumps(INITIALIZE).encode())
        assert answer["id"] == 1
        assert "result" in answer


@pytest.mark.parametrize("name", ["_meta", "field_meta"])
async def test_what_is_beside_the_parameters_does_not_replace_them(
    tmp_path: Path, workspace: Path, name: str
) -> None:
    """The SDK spreads ``_meta`` over the parameters that it has checked."""
    params = {"cwd": str(workspace), "mcpServers": [], name: {"cwd": "/", "sparkle": 1}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}
    async with raw(tmp_path) as process:
        answer = await asked(process, json.dumps(request).encode())
        params = {name: {"cwd": str(workspace)}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": params}
        while "id" not in answer:
            answer = await asked(process, json.dumps(request).encode())
    assert "sessionId" in answer["result"]


@pytest.mark.parametrize(
    "answer",
    [
        # The SDK looks at the result first.
        b'{"id": 7, "error": {"code": 1, "message": "no"}, "result": {"outcome": "yes"}}',
        b'{"id": 7, "result": {"content": "half of \\ud83d"}}',
    ],
)
async def test_an_answer_that_is_none_fails_what_was_asked(answer: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(answer + b"\n")
    message = await PipeTransport(reader, cast("asyncio.StreamWriter", None)).receive()
    assert message is not None
    assert message["id"] == 7
    assert "error" in message
    assert "result" not in message


async def test_an_answer_without_an_error_is_one() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b'{"id": 7, "error": null, "result": {}}\n')
    message = await PipeTransport(reader, cast("asyncio.StreamWriter", None)).receive()
    assert message == {"id": 7, "result": {}}


async def test_a_line_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw(tmp_path) as process:
        answer = await asked(process, b'{"x": "' + b"y" * 70_000_000 + b'"}')
        assert answer["error"]["code"] == -32700
        assert "more than 67108864 bytes" in answer["error"]["message"]
        assert "result" in await asked(process, json.dumps(INITIALIZE).encode())


async def test_what_is_printed_does_not_reach_the_editor(tmp_path: Path) -> None:
    (tmp_path / "stray.py").write_text(STRAY)
    log = tmp_path / "log.txt"
    async with agent_process(environment(tmp_path, {}), log, "stray", tmp_path) as process:
        for _ in range(2):
            assert "result" in await asked(process, json.dumps(INITIALIZE).encode())
            await until(lambda: log.read_text().count("stray") >= 2)
    assert log.read_text().count("stray") == 3


@pytest.mark.parametrize("name", [os.devnull, "file"])
def test_without_an_editor_it_says_what_it_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.touch()
    done = prefork.run("doors.editor.main", env=environment(tmp_path, {}), stdin=file)
    assert done.returncode == 1
    assert "talks JSON-RPC to an editor" in done.stderr
    assert not done.stdout


def test_it_is_started_as_an_editor_does(tmp_path: Path) -> None:
    """In the project, which may hold anything. The other tests fork what has its imports."""
    for name in ("modes", "doors", "acp", "graph"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the project')")
    done = subprocess.run(
        [COMMAND], cwd=tmp_path, input=json.dumps(INITIALIZE) + "\n",
        capture_output=True, text=True, check=True, env=environment(tmp_path, {}),
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "modeshift"


@pytest.mark.parametrize(("option", "code", "said"), [("--help", 0, "make acp"), ("--port", 2, "")])
def test_help_and_unknown_options(option: str, code: int, said: str) -> None:
    done = prefork.run("doors.editor.main", option, env=os.environ)
    assert (done.returncode, said in done.stdout) == (code, True)


def test_make_acp_says_what_to_put_in_an_editor(tmp_path: Path) -> None:
    done = prefork.run("doors.editor.main", "--print-settings", env=environment(tmp_path, {}))
    assert f"command    {COMMAND}\n" in done.stdout
    for found in done.stdout.split("\n{")[1:]:
        snippet = json.loads("{" + found.partition("\n}\n")[0] + "\n}")
        assert snippet["agent_servers"]["Modeshift"]["command"] == str(COMMAND)


SHOWN = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "1",
    "status": "failed",
    "content": [{"type": "content", "content": {"type": "text", "text": "No."}}],
    "rawInput": {"path": None},
    "_meta": {"sparkle": 1},
}


@pytest.mark.parametrize(
    "change",
    [
        {"sparkle": 1},
        {"toolCallId": None},
        {"status": "well"},
        {"sessionUpdate": "sparkle"},
        {"locations": None},
        {"content": [{"type": "content", "content": {"type": "text"}}]},
        {"content": [{"type": "diff", "path": "a", "newText": "b", "sparkle": 1}]},
    ],
)
def test_a_message_that_the_protocol_has_not_is_noticed(change: dict[str, Any]) -> None:
    """By the check that each of these tests ends with."""
    message = {"jsonrpc": "2.0", "method": "session/update"}
    check([{**message, "params": {"sessionId": "1", "update": SHOWN}}])
    with pytest.raises(AssertionError, match="no <class"):
        check([{**message, "params": {"sessionId": "1", "update": {**SHOWN, **change}}}])
    with pytest.raises(AssertionError, match="sessionId"):
        check([{**message, "params": {"update": SHOWN}}])
