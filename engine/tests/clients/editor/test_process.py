"""The process behind an editor: how it ends, what it locks, that it is the usual agent."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.store.base import PutOp

from modeshift.configuration.loading import AgentLoader
from modeshift.editor.store import Sessions
from modeshift.modes.errors import StorageError, ToolFailedError
from modeshift.storage.sqlite import SqliteDatabase
from modeshift.storage.threads import open_saver, open_store, prepare_tables
from tests.clients.editor.editor import choosing, editing
from tests.harness import prefork
from tests.harness.conversation import until
from tests.harness.place import UserFolders, environment


def has_ended(process: psutil.Process) -> bool:
    """Also if nobody has asked for its exit code, as in containers whose first process does not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("how", ["stdin", "SIGTERM"])
async def test_an_editor_that_vanishes_leaves_nothing_running(
    tmp_path: Path, workspace: Path, how: str
) -> None:
    async with editing(tmp_path, answer=choosing("once")) as editor:
        talk = await editor.talk(workspace, "code")
        turn = await talk.begin("run echo begun; sleep 600", talk.has_printed)
        children = psutil.Process(editor.process.pid).children(recursive=True)
        assert children
        if how == "SIGTERM":
            editor.process.terminate()
        else:
            editor.process.stdin.close()
        assert await editor.process.wait() == 0
        await until(lambda: all(map(has_ended, children)))
        with pytest.raises(ConnectionError):
            await turn
    assert "Traceback" not in editor.log.read_text()
    async with editing(tmp_path) as editor:
        talk = await editor.load(talk)
        assert [status for _, status in talk.ends] == ["failed"]
        assert await talk.say("hello") == "end_turn"


async def test_an_editor_that_stops_reading_is_not_waited_for(
    tmp_path: Path, workspace: Path
) -> None:
    async with editing(tmp_path) as editor:
        talk = await editor.talk(workspace)
        await talk.say("hello " + "x" * 5_000_000)
        editor.process.output.pause_reading()
        loading = asyncio.create_task(editor.load(talk))
        await asyncio.sleep(0.5)  # it writes until the pipe is full
        editor.process.stdin.close()
        await editor.process.wait()
        editor.process.output.resume_reading()
        with pytest.raises(ConnectionError):
            await loading


@pytest.mark.slow  # SQLite waits 5 s for a lock
async def test_a_lock_on_the_file_holds_up_no_end(tmp_path: Path, workspace: Path) -> None:
    async with editing(tmp_path) as editor:
        talks = [await editor.talk(workspace) for _ in range(3)]
        with closing(sqlite3.connect(tmp_path / "sessions.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            turns = [asyncio.create_task(talk.say("hello")) for talk in talks]
            await asyncio.sleep(0.1)
            editor.process.stdin.close()
            assert await editor.process.wait() == 1  # it does not wait for SQLite, 5 s for each
            ends = await asyncio.gather(*turns, return_exceptions=True)
            assert {type(end) for end in ends} == {ConnectionError}


async def test_a_write_that_is_cancelled_or_fails_leaves_no_lock(tmp_path: Path) -> None:
    """Wherever it is cancelled, it has ended before anything else goes on."""
    file = tmp_path / "s.sqlite"
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": "", "checkpoint_id": "1"}}
    database = SqliteDatabase(file, timeout=0)
    await prepare_tables(database)
    async with open_saver(database) as saver:
        tasks_before = asyncio.all_tasks()
        for ticks in range(13):
            write = asyncio.create_task(saver.aput(config, empty_checkpoint(), {}, {}))
            for _ in range(ticks):
                await asyncio.sleep(0)
            write.cancel()
            with suppress(asyncio.CancelledError):
                await write
            assert asyncio.all_tasks() <= tasks_before
            assert not await database.run(lambda opened: opened.in_transaction)
        begun, may_end, ended = Event(), Event(), Event()
        works = (begun.set, may_end.wait, ended.set)
        slow = asyncio.create_task(database.run(lambda _: [work() for work in works]))
        await asyncio.to_thread(begun.wait)
        slow.cancel()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
        await asyncio.wait({slow})
        assert ended.is_set()
        with closing(sqlite3.connect(file)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StorageError, match="locked"):
                await saver.aput(config, empty_checkpoint(), {}, {})
            assert not await database.run(lambda opened: opened.in_transaction)
        trigger = "CREATE TRIGGER full BEFORE INSERT ON writes WHEN new.idx = 1 BEGIN {} END"
        await database.execute(trigger.format("SELECT RAISE(ABORT, 'disk full');"))
        with pytest.raises(StorageError, match="disk full"):
            await saver.aput_writes(config, [("a", 1), ("b", 2)], "task")
        assert await database.execute("SELECT count(*) FROM writes") == [(0,)]
    await database.close()


FAILING_COMMIT = """
    PRAGMA foreign_keys = ON;
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER orphan AFTER INSERT ON store BEGIN INSERT INTO children VALUES (1); END;
"""


async def test_a_commit_of_the_store_that_fails_is_rolled_back(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "s.sqlite")
    await prepare_tables(database)
    async with open_store(database) as store:
        await database.run(lambda opened: opened.executescript(FAILING_COMMIT))
        with pytest.raises(StorageError, match="FOREIGN KEY constraint failed"):
            await store.abatch([PutOp(("a",), "b", {})])
        assert not await database.run(lambda opened: opened.in_transaction)
        assert await asyncio.to_thread(store.get, ("a",), "b") is None
    await database.close()


async def test_no_tool_opens_what_the_agent_has_locks_on(place: UserFolders) -> None:
    """POSIX takes a process's locks off a file when it closes any descriptor of it."""
    file = place.root / "data/s.sqlite"
    file.parent.mkdir()
    (place.root / "link").symlink_to("data")
    settings = place.settings(workspace=place.root, sessions=file)
    toolbox = AgentLoader(settings).deps().toolbox
    async with Sessions.open(file, settings.open_database(file)):
        (place.root / "hard").hardlink_to(f"{file}.lock")
        for path in ("data/s.sqlite", "data/s.sqlite.lock", "link/s.sqlite.lock", "hard"):
            for name, args in (("search_files", {"regex": "x"}), ("write_file", {"content": "x"})):
                tool = toolbox[name]
                with pytest.raises(ToolFailedError, match="the agent's own"):
                    await tool.runnable.ainvoke(toolbox.check(tool, {**args, "path": path}))
        # To look from this process would take its own locks off.
        command = ("modeshift", "clean-data")
        environ = environment(place.root, SESSIONS=str(file))
        assert "an editor is at work" in prefork.run(*command, env=environ).stderr
