"""A process that was stopped while another one took over its thread stores nothing more."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.facts import Done
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import HOLD
from modeshift.storage.opening import open_database
from modeshift.storage.threads import open_saver, prepare_tables
from modeshift.threads import journal as journal_module
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Hold, Journal
from tests.harness.conversation import SECONDS, Conversation, make_agent
from tests.harness.postgres import Postgres

DAY = 24 * 3600
DONE = Done(tool="edit_file", mode="code", is_success=True)


@dataclass
class Process:
    """As another process, on another machine."""

    database: Database
    saver: BaseCheckpointSaver[Any]
    journal: Journal

    async def store(self, hold: str | None) -> None:
        here = {"thread_id": "thread", "checkpoint_ns": ""} | ({} if hold is None else {HOLD: hold})
        config = await self.saver.aput({"configurable": here}, empty_checkpoint(), {}, {})
        config["configurable"] |= here
        await self.saver.aput_writes(config, [("messages", "hi")], "task")

    async def count(self) -> list[Any]:
        tables = "checkpoints", "checkpoint_blobs", "checkpoint_writes"
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)  # noqa: S608  # our names
        return await self.database.execute(f"SELECT {counts}")


@asynccontextmanager
async def open_process(url: str, machine: Path, lease: float = 30) -> AsyncIterator[Process]:
    machine.mkdir()
    database = open_database(url, machine, timeout=4)
    await prepare_tables(database)
    async with open_saver(database) as saver:
        yield Process(database, saver, Journal(database, machine / "threads", lease))
    await database.close()


@pytest.fixture
async def processes(postgres: Postgres, tmp_path: Path) -> AsyncIterator[tuple[Process, Process]]:
    url = postgres.make_database()
    async with (
        open_process(url, tmp_path / "first") as first,
        open_process(url, tmp_path / "second") as second,
    ):
        yield first, second


async def test_a_hold_that_is_taken_over_stores_nothing(processes: tuple[Process, Process]) -> None:
    first, second = processes
    old = await first.journal.hold("thread").take()
    assert await first.journal.hold("thread").take() == old
    await first.store(old)
    taken = await second.journal.hold("thread").take()
    stored = await first.count()
    with pytest.raises(InvalidInputError, match="another process goes on"):
        await first.store(old)
    config: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": "", HOLD: old}}
    config["configurable"]["checkpoint_id"] = "any"
    with pytest.raises(InvalidInputError, match="another process goes on"):
        await first.saver.aput_writes(config, [("messages", "hi")], "task")
    assert await first.count() == stored
    await second.store(taken)
    again = await first.journal.hold("thread").take()
    for hold in (old, taken):
        with pytest.raises(InvalidInputError, match="another process goes on"):
            await first.store(hold)
    await first.store(again)
    await first.store(None)  # no run: a host's update


async def test_a_takeover_waits_but_not_for_ever(processes: tuple[Process, Process]) -> None:
    first, second = processes
    hold = await first.journal.hold("thread").take()
    select = "SELECT 1 FROM holders WHERE hold = :hold FOR SHARE"
    with pytest.raises(StorageError, match="idle-in-transaction"):
        async with first.database.transaction() as transaction:
            assert await transaction.execute(select, hold=hold)
            takeover = asyncio.create_task(second.journal.hold("thread").take())
            assert not (await asyncio.wait({takeover}, timeout=0.5))[0]
            async with asyncio.timeout(SECONDS):  # the process is stopped here
                assert await takeover != hold
            await transaction.execute("SELECT 1")


async def test_a_run_whose_thread_was_taken_over_ends_and_stores_nothing(
    processes: tuple[Process, Process], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = processes
    monkeypatch.setattr(Hold, "keep", lambda *_: asyncio.sleep(0))  # it saw nothing yet
    stored: list[Any] = []

    async def take_over(*_: object, **unless: object) -> None:
        if stored or not unless:  # the model is asked next
            return
        await second.journal.hold(talk.config["configurable"]["thread_id"]).take()
        stored.append(await second.count())

    started = StartedCalls(journal=first.journal)
    talk = Conversation(make_agent(workspace, saver=first.saver, started_calls=started))
    await talk.say("hello")
    monkeypatch.setattr(started.background, "end", take_over)
    with pytest.raises(InvalidInputError, match="another process goes on"):
        await talk.say("read notes.txt")
    assert stored[0] == await second.count()


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_processs_clock_that_jumps_changes_no_lease(
    processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    first, second = (process.journal for process in processes)
    first.lease = 2
    before = {"f": "0"}  # unchanged, and yet nobody can tell that nothing was done
    call = await first.hold("thread").begin("key", "edit_file", before, {"f": "1"}, DONE)
    assert call is not None
    wall = time.time

    class Jumped(journal_module.datetime):  # type: ignore[misc, name-defined]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(wall() + jump, tz)

    monkeypatch.setattr(time, "time", lambda: wall() + jump)
    monkeypatch.setattr(journal_module, "datetime", Jumped)
    has_ended = asyncio.Event()
    kept = asyncio.create_task(call.keep(has_ended.wait()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.7):  # it is renewed, and seen to live
            await second.find("key", lambda _: asyncio.sleep(0, before))
    has_ended.set()
    assert await kept
    # Its lease ends when the database's clock says so.
    async with asyncio.timeout(SECONDS):
        effect = await second.find("key", lambda _: asyncio.sleep(0, before))
    assert effect is not None
    assert effect.state == "unknown"


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_the_databases_clock_may_jump(processes: tuple[Process, Process], jump: int) -> None:
    first, second = (process.journal for process in processes)
    before, after = {"f": "0"}, {"f": "1"}
    call = await first.hold("thread").begin("key", "edit_file", before, after, DONE)
    assert call is not None
    clock = f"({second.database.clock} + {jump})"
    second.database.clock = clock
    finding = asyncio.create_task(second.find("key", lambda _: asyncio.sleep(0, before)))
    await asyncio.wait({finding}, timeout=0.5)
    assert not await second.hold("thread").begin("key", "edit_file", before, after, DONE)
    result = ToolMessage("edited", tool_call_id="a")
    await call.finish(result, after, DONE)
    async with asyncio.timeout(SECONDS):
        effect = await finding
    assert effect is not None
    assert effect.state == ("unknown" if jump > 0 else "done")
