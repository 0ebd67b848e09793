"""A database that cannot be used: a clear error, nothing unapproved, nothing twice."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import ToolMessage

from modeshift.modes.errors import StorageError
from modeshift.storage.opening import open_database
from modeshift.storage.sqlite import SqliteDatabase
from modeshift.storage.threads import open_saver, prepare_tables
from modeshift.threads.journal import Journal, RunningCall
from modeshift.threads.started_calls import StartedCalls
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.postgres import Postgres

BREAK = {
    "a full disk": "PRAGMA max_page_count = 1",
    "a file that is read-only": "PRAGMA query_only = ON",
}
MEND = {
    "a full disk": "PRAGMA max_page_count = 100000",
    "a file that is read-only": "PRAGMA query_only = OFF",
}
SAYS = {
    "a full disk": "disk is full",
    "a file that is read-only": "readonly database",
    "a lock that is held": "database is locked",
}


END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid != pg_backend_pid()"
)
POSTGRES = {
    "lock timeout": (
        ["BEGIN", "LOCK TABLE decisions, effects IN EXCLUSIVE MODE"],
        ["ROLLBACK"],
    ),
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
        if what in BREAK:
            await self._database.execute(BREAK[what])
        else:
            self._other.execute("BEGIN IMMEDIATE")

    async def mend(self, what: str) -> None:
        if what in MEND:
            await self._database.execute(MEND[what])
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
async def test_an_answer_that_cannot_be_stored_runs_nothing(
    thread: Thread, workspace: Path, what: str
) -> None:
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
async def test_a_postgres_that_cannot_be_written_runs_nothing(
    postgres: Postgres, workspace: Path, what: str
) -> None:
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
