"""What both databases do; where one cannot be used, nothing runs unapproved, or twice."""

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import ToolMessage

from modeshift.modes.errors import StorageError
from modeshift.storage.database import Database
from modeshift.storage.opening import open_database
from modeshift.storage.sqlite import SqliteDatabase
from modeshift.storage.threads import open_saver, prepare_tables
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Journal, RunningCall
from tests.chaos.__main__ import FAULTS
from tests.harness import prefork
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.postgres import WHY_NOT, Postgres, find_postgres
from tests.harness.root import ENGINE

STEPS = [
    "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT)",
    "CREATE INDEX texts ON notes (text)",
]
INSERT = "INSERT INTO notes (id, text) VALUES (:id, :text) ON CONFLICT DO NOTHING RETURNING id"
SELECT = "SELECT id, text FROM notes ORDER BY id"


async def test_values_and_a_transaction_that_is_whole_or_nothing(database: Database) -> None:
    await database.migrate("notes", STEPS)
    assert await database.execute(INSERT, id="a", text="100% of it?") == [("a",)]
    assert await database.execute(INSERT, id="a", text="again") == []
    assert await database.execute(SELECT) == [("a", "100% of it?")]
    assert await database.execute("DELETE FROM notes WHERE text LIKE '100%'") == []
    assert await database.execute(SELECT) == []
    await database.migrate("notes", STEPS)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="a", text="x")
            assert await transaction.execute(SELECT) == [("a", "x")]
            assert await database.execute(SELECT) == []
            raise ZeroDivisionError
    with pytest.raises(StorageError):
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="b", text="x")
            await transaction.execute("INSERT INTO nowhere VALUES (1)")
    assert await database.execute(SELECT) == []


async def test_a_cancelled_transaction_and_many_at_once(database: Database) -> None:
    await database.migrate("notes", STEPS)
    has_begun = asyncio.Event()

    async def hang() -> None:
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="a", text="x")
            has_begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.execute(INSERT, id="a", text="y") == [("a",)]
    await database.migrate(
        "counts", ["CREATE TABLE counts (n BIGINT)", "INSERT INTO counts VALUES (0)"]
    )

    async def add() -> None:
        async with database.transaction() as transaction:
            await transaction.execute("UPDATE counts SET n = n + 1")
            await transaction.execute("SELECT n FROM counts")

    await asyncio.gather(*(add() for _ in range(40)))
    assert await database.execute("SELECT n FROM counts") == [(40,)]


async def test_a_look_waits_for_no_write_and_sees_what_is_stored(
    url: str, tmp_path: Path, database: Database
) -> None:
    await database.migrate("notes", STEPS)
    other = open_database(url, tmp_path / "threads.sqlite")
    async with other.transaction() as transaction:
        await transaction.execute(INSERT, id="a", text="x")
        waiting = asyncio.create_task(database.execute(INSERT, id="a", text="y"))
        await asyncio.sleep(0)
        assert await database.look(SELECT) == []
    assert await waiting == []
    assert await database.look("SELECT text FROM notes WHERE id = :id", id="a") == [("x",)]
    await other.close()
    await database.close()
    assert await database.look(SELECT) == [("a", "x")]
    with pytest.raises(StorageError, match="nowhere"):
        await database.look("SELECT 1 FROM nowhere")


async def test_a_look_is_in_the_file_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the process has gone since, and whatever the file is called."""
    there = tmp_path / "there"
    there.mkdir()
    for name in ("threads.sqlite", "a?b#c%41 d&mode=rw"):
        monkeypatch.chdir(tmp_path)
        async with SqliteDatabase(Path(name)) as elsewhere:
            await elsewhere.migrate("notes", STEPS)
        async with SqliteDatabase(Path(name)) as database:
            monkeypatch.chdir(there)
            await database.migrate("notes", STEPS)
            await database.execute(INSERT, id="a", text="x")
            assert await database.look(SELECT) == [("a", "x")]


async def test_a_step_is_executed_once_whoever_comes(database: Database) -> None:
    await asyncio.gather(*(database.migrate("notes", STEPS[:1]) for _ in range(5)))
    await database.execute(INSERT, id="a", text="x")
    await asyncio.gather(*(database.migrate("notes", STEPS) for _ in range(5)))
    assert await database.execute(SELECT) == [("a", "x")]
    with pytest.raises(StorageError, match=r"written by a newer modeshift \(notes: 2, here 1\)"):
        await database.migrate("notes", STEPS[:1])


def test_another_event_loop_uses_it_too(url: str, tmp_path: Path) -> None:
    database = open_database(url, tmp_path / "threads.sqlite")

    async def use() -> None:
        await database.migrate("notes", STEPS)
        await database.execute(INSERT, id="a", text="x")
        await database.close()

    asyncio.run(use())
    asyncio.run(use())


async def test_a_lock_that_is_held_too_long(url: str, tmp_path: Path, database: Database) -> None:
    await database.migrate("notes", STEPS)
    other = open_database(url, tmp_path / "threads.sqlite", timeout=0.2)
    async with database.transaction() as transaction:
        await transaction.execute("INSERT INTO notes VALUES ('a', 'x')")
        with pytest.raises(StorageError, match="cannot be used now"):
            await other.execute("INSERT INTO notes VALUES ('a', 'y')")
    assert await database.execute(SELECT) == [("a", "x")]
    await other.close()


async def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "threads.sqlite").write_text("this is no database, and longer than a header is")
    with pytest.raises(StorageError, match=r"threads\.sqlite cannot be used now: file is not"):
        await open_database("", tmp_path / "threads.sqlite").migrate("notes", STEPS)


FULL, NOT_FULL = "PRAGMA max_page_count = 1", "PRAGMA max_page_count = 100000"
SAYS = {"a full disk": "disk is full", "a lock that is held": "database is locked"}


END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid != pg_backend_pid()"
)
POSTGRES = {
    "lock timeout": (["BEGIN", "LOCK TABLE decisions, effects IN EXCLUSIVE MODE"], ["ROLLBACK"]),
    "read-only transaction": (
        ["ALTER DATABASE {} SET default_transaction_read_only = true", END],
        ["SET default_transaction_read_only = false", "ALTER DATABASE {} RESET ALL", END],
    ),
}
"""What breaks and mends it, by what the error says."""


class Thread:
    """A conversation whose journal is in the file of its checkpoints."""

    def __init__(self, talk: Conversation, database: SqliteDatabase) -> None:
        self.talk = talk
        self._database = database
        self._other = sqlite3.connect(database.name, isolation_level=None)

    async def break_it(self, what: str) -> None:
        if what == "a full disk":
            await self._database.execute(FULL)
        else:
            self._other.execute("BEGIN IMMEDIATE")

    async def mend(self, what: str) -> None:
        if what == "a full disk":
            await self._database.execute(NOT_FULL)
        else:
            self._other.execute("ROLLBACK")

    def close(self) -> None:
        self._other.close()


@pytest.fixture
async def thread(workspace: Path, tmp_path: Path) -> AsyncIterator[Thread]:
    file = tmp_path / "threads.sqlite"
    database = SqliteDatabase(file, timeout=0.2)
    await prepare_tables(database)
    async with open_saver(database) as saver:
        started = StartedCalls(journal=Journal(database, file))
        talk = Conversation(make_agent(workspace, saver=saver, started_calls=started))
        with closing(Thread(talk, database)) as thread:
            yield thread
        await database.close()


@pytest.mark.parametrize("what", SAYS)
async def test_an_answer_not_stored_runs_none(thread: Thread, workspace: Path, what: str) -> None:
    talk, journal = thread.talk, thread.talk.agent.started_calls.journal
    await talk.say("run echo one >> log", mode="code")
    await thread.break_it(what)
    for size in (999, 1):
        with pytest.raises(StorageError, match=SAYS[what]):
            for number in range(1000):  # until the page that there is is full
                await journal.decide("other", f"{size} {number}", ["x" * size], "")
    with pytest.raises(StorageError, match=rf"threads\.sqlite cannot be used now: .*{SAYS[what]}"):
        await talk.decide(APPROVE)
    assert not list(workspace.iterdir())
    await thread.mend(what)
    await talk.send(None)
    await talk.approve_all()  # who was told of an error is asked again
    assert (workspace / "log").read_text() == "one\n"


@pytest.mark.parametrize("what", POSTGRES)
async def test_a_failing_postgres_runs_none(postgres: Postgres, workspace: Path, what: str) -> None:
    url = postgres.make_database()
    database = open_database(url, Path("unused"), timeout=2 if what == "lock timeout" else 30)
    await prepare_tables(database)
    async with open_saver(database) as saver:
        started = StartedCalls(journal=Journal(database, workspace.parent / "owners"))
        talk = Conversation(make_agent(workspace, saver=saver, started_calls=started))
        await talk.say("run echo one >> log", mode="code")
        with psycopg.connect(url, autocommit=True) as other:
            breaks, mends = (
                [text.format(url.rpartition("/")[2]).encode() for text in texts]
                for texts in POSTGRES[what]
            )
            for statement in breaks:
                other.execute(statement)
            with pytest.raises(StorageError, match=f"cannot be used now: .*{what}"):
                await talk.decide(APPROVE)
            assert not list(workspace.iterdir())
            for statement in mends:
                other.execute(statement)
        await talk.send(None)
        await talk.approve_all()
        assert (workspace / "log").read_text() == "one\n"
    await database.close()


@pytest.mark.parametrize("what", SAYS)
async def test_a_result_that_cannot_be_stored_is_unknown(
    thread: Thread, workspace: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    talk, keep = thread.talk, RunningCall.keep
    await talk.say("run echo one >> log", mode="code")

    async def keep_and_break(call: RunningCall, run: Any) -> Any:
        result = await keep(call, run)
        await thread.break_it(what)
        return result

    monkeypatch.setattr(RunningCall, "keep", keep_and_break)
    if what == "a full disk":
        finish = RunningCall.finish

        async def finish_large(call: RunningCall, result: ToolMessage, *given: Any) -> None:
            await finish(call, ToolMessage("x" * 100_000, tool_call_id=result.tool_call_id), *given)

        monkeypatch.setattr(RunningCall, "finish", finish_large)
    with pytest.raises(StorageError, match=SAYS[what]):
        await talk.decide(APPROVE)
    await thread.mend(what)
    await talk.send(None)
    assert (workspace / "log").read_text() == "one\n"
    (result,) = (await talk.results()).values()
    assert "may have taken effect" in result.text


def run_chaos(*options: str) -> tuple[int, dict[str, int], str]:
    """The exit code, what it counted, and what it wrote beside that."""
    done = prefork.run("tests.chaos", *options, cwd=ENGINE, env=os.environ)
    counted = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, counted, done.stderr + done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_nothing_is_lost_or_done_twice(database: str) -> None:
    if database == "postgres" and find_postgres() is None:
        pytest.skip(WHY_NOT)
    stops = {"postgres": "1"}.get(database, "0")
    options = ("--database", database, "--kills", "5", "--resumes", "4", "--stops", stops)
    code, counted, printed = run_chaos(*options)
    assert code == 0, printed
    assert (counted["kills"], counted["double resumes"]) == (5, 4)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    code, counted, printed = run_chaos("--fault", fault, "--kills", "2", "--resumes", "0")
    assert code == 1, printed
    assert counted[FAULTS[fault]["found"]] > 0, printed
