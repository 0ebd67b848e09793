"""The process behind an editor: how it ends, and that it is the agent of the other doors."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp import RequestError
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from doors.editor.store import Sessions
from graph.configuration.loading import AgentLoader
from modes.errors import ToolFailedError
from tests.doors.editor.editor import SLEEP, begun, choosing, editing, has_begun, reopened
from tests.harness import prefork
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.place import UserFolders
from tests.harness.server import Thread, running


def runs(process: psutil.Process) -> bool:
    """Whether it is there, and no zombie that nobody has looked after."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("how", ["stdin", "SIGTERM"])
async def test_an_editor_that_vanishes_leaves_nothing_running(
    tmp_path: Path, workspace: Path, how: str
) -> None:
    async with editing(tmp_path, answer=choosing("once")) as editor:
        id = await begun(editor, workspace)
        turn = asyncio.create_task(editor.say(id, SLEEP))
        await editor.until(lambda: has_begun(editor))
        children = psutil.Process(editor.process.pid).children(recursive=True)
        assert children
        if how == "SIGTERM":
            editor.process.terminate()
        else:
            editor.process.stdin.close()
        assert await editor.process.wait() == 0
        assert not any(map(runs, children))
        with pytest.raises(ConnectionError):
            await turn
    assert "Traceback" not in editor.log.read_text()
    async with editing(tmp_path) as editor:
        await reopened(editor, workspace, id)
        assert editor.of("tool_call", id)[-1].status == "failed"
        assert await editor.say(id, "hello") == "end_turn"


async def test_a_lock_on_the_file_passes_and_holds_up_no_end(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        assert await editor.say(id, "hello") == "end_turn"
        with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(RequestError):
                await editor.say(id, "hello")
        assert await editor.say(id, "hello") == "end_turn"
        with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            turn = asyncio.create_task(editor.say(id, "hello"))
            await asyncio.sleep(0.2)
            editor.process.stdin.close()
            await editor.process.wait()
            with pytest.raises(ConnectionError):
                await turn


async def test_an_editor_that_stops_reading_is_not_waited_for(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path) as editor:
        id = (await editor.new(workspace)).session_id
        await editor.say(id, "hello " + "x" * 5_000_000)
        editor.process.output.pause_reading()
        loading = asyncio.create_task(reopened(editor, workspace, id))
        await asyncio.sleep(1)
        editor.process.stdin.close()
        await editor.process.wait()
        editor.process.output.resume_reading()
        with pytest.raises(ConnectionError):
            await loading


IN_USE = """
import sys, pathlib
from doors.commands.clean_data import _is_in_use as is_in_use
sys.exit(is_in_use(pathlib.Path(sys.argv[1])))
"""
OPENING: dict[str, dict[str, Any]] = {
    "read_file": {},
    "search_files": {"regex": "x"},
    "write_file": {"content": "x"},
    "edit_file": {"old": "x", "new": "y"},
}


def is_in_use_for_others(file: Path) -> bool:
    """To look from this process would take its own locks off."""
    (file.parent / "look.py").write_text(IN_USE)
    return bool(prefork.run("look", str(file), env=os.environ, cwd=file.parent).returncode)


async def test_no_tool_opens_what_the_agent_has_locks_on(place: UserFolders) -> None:
    """POSIX takes a process's locks off a file when it closes any descriptor of it."""
    file = place.root / "data/s.sqlite"
    file.parent.mkdir()
    (place.root / "link").symlink_to("data")
    toolbox = AgentLoader(place.settings(workspace=place.root, sessions=file)).deps().toolbox
    async with Sessions.open(file):
        (place.root / "hard").hardlink_to(f"{file}.lock")
        for path in ("data/s.sqlite", "data/s.sqlite.lock", "link/s.sqlite.lock", "hard"):
            for name, args in OPENING.items():
                tool = toolbox[name]
                with pytest.raises(ToolFailedError, match="the agent's own"):
                    await tool.runnable.ainvoke(toolbox.check(tool, {**args, "path": path}))
        assert is_in_use_for_others(file)
    assert not is_in_use_for_others(file)


# The same agent as behind the other doors.


def told(messages: list[Any]) -> list[Any]:
    """A history without what differs from one run to another."""
    found = []
    for one in messages:
        data = one if isinstance(one, dict) else one.model_dump()
        calls = [(call["name"], call["args"], call["id"]) for call in data.get("tool_calls") or []]
        found.append((data["type"], data["content"], calls, data.get("tool_call_id")))
    return found


async def test_the_transcript_is_the_same_as_through_the_dev_server(tmp_path: Path) -> None:
    """README's first conversation."""
    text = "write notes.txt: hello"
    (tmp_path / "editor" / "w").mkdir(parents=True)
    async with editing(tmp_path / "editor", answer=choosing("manual", "once")) as editor:
        id = (await editor.new(tmp_path / "editor" / "w")).session_id
        await editor.say(id, text)
    file = str(tmp_path / "editor" / "sessions.sqlite")
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        talk = Conversation(make_agent(tmp_path / "editor" / "w", saver=saver))
        talk.config = {"configurable": {"thread_id": id}}
        here = await talk.values()
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as server:
        async with server.client as client:
            thread = await Thread.new(client)
            await thread.say(text)
            while await thread.waiting():
                await thread.decide(APPROVE)
            there = await thread.values()
        files = {path.name: path.read_text() for path in server.workspace.iterdir()}
    assert {p.name: p.read_text() for p in (tmp_path / "editor" / "w").iterdir()} == files
    for key in ("mode", "approvals", "first_mode", "todos", "written", "phase"):
        assert here.get(key) == there.get(key), key
    changes = [
        [{k: v for k, v in change.items() if k != "when"} for change in one["mode_changes"]]
        for one in (here, there)
    ]
    assert changes[0] == changes[1]
    assert told(here["messages"]) == told(there["messages"])
