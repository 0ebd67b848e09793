"""LangGraph's checkpointer and store, with our own rules, on both databases."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import GetOp, InvalidNamespaceError
from typing_extensions import override

from modeshift.commands.usage import read_threads
from modeshift.configuration.databases import open_threads
from modeshift.configuration.settings import Settings
from modeshift.modes.errors import StorageError
from modeshift.modes.policy import Approvals
from modeshift.server.checkpointer import owners_of
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import rename_keys
from modeshift.storage.opening import open_database
from modeshift.storage.sqlite import SqliteDatabase
from modeshift.storage.threads import (
    check_database,
    drop_tables,
    open_saver,
    open_store,
    prepare_tables,
    read_newest,
)
from modeshift.threads.mailbox import REVISION, Mailbox
from modeshift.threads.routing import is_cut_off
from tests.harness.clone import copy_template
from tests.harness.conversation import APPROVE, Conversation, make_agent
from tests.harness.postgres import Postgres
from tests.harness.programs import run_in_clone

HOUR_NS = 3600 * 10**9


@pytest.fixture
async def there(url: str, database: Database, tmp_path: Path) -> AsyncIterator[Database]:
    """Of another process. The tables are there."""
    await prepare_tables(database)
    opened = open_database(url, tmp_path / "threads.sqlite")
    yield opened
    await opened.close()


async def test_of_several_the_last_one_wins_key_by_key(database: Database, there: Database) -> None:
    async with (
        open_saver(database) as saver,
        open_store(database) as store,
        open_store(there) as other,
    ):
        first, second = Mailbox(store), Mailbox(other)
        assert await first.find_news("thread", {}) == {}
        await first.put("thread", {"mode": "code", "limit": "ask"})
        early = (await second.find_news("thread", {}))[REVISION]
        await second.put("thread", {"mode": "debug"})
        await first.put("another", {"mode": "ask"})
        news = await first.find_news("thread", {})
        assert (news["mode"], news["limit"]) == ("debug", "ask")
        assert (await first.find_news("thread", early)).keys() == {"mode", REVISION}
        assert await second.find_news("thread", news[REVISION]) == {}
        await saver.acopy_thread("thread", "copy")
        assert await first.find_news("copy", {}) == news
        await saver.adelete_thread("thread")
        assert await first.find_news("thread", {}) == {}
        await second.put("thread", {"mode": "debug"})
        assert (await first.find_news("thread", news[REVISION]))["mode"] == "debug"
        assert await second.find_news("copy", news[REVISION]) == {}


async def test_a_thread_goes_on_in_a_process_whose_clock_is_behind(
    database: Database, there: Database, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)  # and is set back for the next test
    async with open_saver(database) as saver:
        monkeypatch.setattr(time, "time_ns", lambda: now() + HOUR_NS)
        talk = Conversation(make_agent(workspace, saver=saver))
        await talk.say("write a.txt: x", mode="code")
    monkeypatch.setattr(time, "time_ns", now)
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)  # as another process begins
    async with open_saver(there) as saver:
        later = Conversation(make_agent(workspace, saver=saver))
        later.config = talk.config
        await later.decide(APPROVE)
        await later.say("hello")
        values = await later.values()
    said = [message.text for message in values["messages"] if message.type == "human"]
    assert said == ["write a.txt: x", "hello"]
    assert (workspace / "a.txt").read_text() == "x"


async def test_a_conversation_goes_on(database: Database, there: Database, workspace: Path) -> None:
    """In one process and then in another."""
    async with open_saver(database) as saver, open_store(database) as store:
        talk = Conversation(make_agent(workspace, saver=saver, store=store))
        thread = str(talk.config["configurable"]["thread_id"])
        talk.config["configurable"]["user_id"] = "alice"
        talk.config["metadata"] = {"owner": "alice"}
        await talk.say("write a.txt: x", mode="code")
        assert len(await talk.waiting()) == 1
    async with open_saver(there) as saver, open_store(there) as store:
        await saver.acopy_thread(thread, "copy")
        again = Conversation(make_agent(workspace, saver=saver, store=store))
        again.config = {"configurable": {"thread_id": "copy"}}
        await Mailbox(store).put("copy", {"approvals": "auto"})
        await again.decide(APPROVE)
        assert (workspace / "a.txt").read_text() == "x"
        values = await again.values()
        assert values["approvals"] == Approvals.AUTO
        newest = await read_newest(there, "copy")
        assert (newest["phase"], newest["usage"]) == ("idle", values["usage"])
        assert await owners_of(there, thread) == {"alice"}
        assert await owners_of(there, "none") == set()
        threads = await read_threads(there)
        counts = {each.id: sum(m["answers"] for m in each.taken.values()) for each in threads}
        assert counts == {thread: 1, "copy": 2}
        await saver.adelete_thread(thread)
    assert [each.id for each in await read_threads(database)] == ["copy"]
    assert [each.id for each in await read_threads(database, thread)] == []


async def test_a_thread_goes_on_with_long_versions(tmp_path: Path, workspace: Path) -> None:
    file = tmp_path / "threads.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        talk = Conversation(make_agent(workspace, saver=saver))
        for number in range(2):
            await talk.say(f"hello {number}")
    database = open_database("", file)
    await prepare_tables(database)
    async with open_saver(database) as saver:
        config, talk = talk.config, Conversation(make_agent(workspace, saver=saver))
        talk.config = config
        for number in range(2, 6):
            await talk.say(f"hello {number}")
        messages = [message.text for message in await talk.messages() if message.type == "human"]
        newest = await saver.aget_tuple(talk.config)
    await database.close()
    assert messages == [f"hello {number}" for number in range(6)]
    assert newest is not None
    versions = sorted(map(str, newest.checkpoint["channel_versions"].values()))
    assert versions == sorted(versions, key=lambda each: int(each.partition(".")[0]))
    lengths = {len(version) for version in versions}
    assert min(lengths) == 8
    assert max(lengths) > 40


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("turn", [1, 2])
async def test_a_turn_cut_off_before_its_first_node_does_not_look_finished(
    database: Database, workspace: Path, turn: int, *, goes_on: bool
) -> None:
    """What was said is stored, and the checkpoint behind it is not."""
    await prepare_tables(database)
    async with open_saver(database) as saver:
        talk = Conversation(make_agent(workspace, saver=saver))
        for number in range(turn):
            await talk.say(f"hello {number}")
        history = [state async for state in talk.agent.aget_state_history(talk.config)]
        said = next(each for each in history if (each.metadata or {}).get("source") == "input")
        newest = said.config["configurable"]["checkpoint_id"]
        await database.execute(
            "DELETE FROM checkpoints WHERE checkpoint_id > :newest", newest=newest
        )
        state = await talk.agent.aget_state(talk.config)
        assert (state.next, state.values.get("phase", "idle")) == ((), "idle")
        assert is_cut_off(state.values, state.tasks, state.interrupts)
        await (talk.send(None) if goes_on else talk.say("And?"))
        state = await talk.agent.aget_state(talk.config)
        assert not is_cut_off(state.values, state.tasks, state.interrupts)
        human = [message.text for message in await talk.messages() if message.type == "human"]
        assert human == [f"hello {number}" for number in range(turn)] + ["And?"] * (not goes_on)


IN_A_CLONE = """
import asyncio
from langgraph.types import Command
from modeshift.agent import open_agent
from modeshift.configuration.settings import load_settings

async def main():
    settings = load_settings()
    async with open_agent(settings) as agents:
        agent = agents.cache.get(settings.workspace, "offline").agent
        config = {"configurable": {"thread_id": "thread"}}
        said = {"messages": [{"role": "user", "content": "write a.txt: x"}], "mode": "code"}
        is_asked = (await agent.aget_state(config)).interrupts
        answer = Command(resume={"decisions": [{"type": "approve"}]})
        print(await agent.ainvoke(answer if is_asked else said, config))

asyncio.run(main())
"""


def test_a_question_of_one_clone_is_answered_in_another(url: str, tmp_path: Path) -> None:
    """Each has its own folder as workspace, and one database."""
    variables = {"CHECKPOINTS": str(tmp_path / "threads.sqlite"), "DATABASE_URL": url}
    for name in ("first", "second"):
        clone = tmp_path / name
        copy_template(clone)
        (clone / "ask_or_answer.py").write_text(IN_A_CLONE)
        run_in_clone(clone, "ask_or_answer", **variables)
    assert (tmp_path / "second/workspace/a.txt").read_text() == "x"
    assert not (tmp_path / "first/workspace/a.txt").exists()


class Wrapper(BaseCheckpointSaver[Any]):
    """As the dev server's: it has LangGraph's own methods, and hands on what those lack."""

    def __init__(self, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__()
        self.inner, self.reads = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self.reads += 1
        return await self.inner.aget_tuple(config)


async def test_a_history_is_not_read_step_by_step(database: Database, workspace: Path) -> None:
    await prepare_tables(database)
    async with open_saver(database) as saver:
        talk = Conversation(make_agent(workspace, saver=saver))
        for _ in range(3):
            await talk.say("list")
        wrapper = Wrapper(saver)
        agent = talk.agent.copy(update={"checkpointer": wrapper})
        state = await agent.aget_state(talk.config)
        assert state.values == await talk.values()
        assert wrapper.reads == 1


async def test_a_cancelled_write_leaves_nothing_open(database: Database, there: Database) -> None:
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    async with open_saver(database) as saver, open_saver(there) as other:
        for ticks in range(12):
            write = asyncio.create_task(saver.aput(config, empty_checkpoint(), {}, {}))
            for _ in range(ticks):
                await asyncio.sleep(0)
            write.cancel()
            with suppress(asyncio.CancelledError):
                await write
            await other.aput(config, empty_checkpoint(), {}, {})
        assert len([saved async for saved in saver.alist(config)]) >= 12


async def test_a_store_gives_what_was_put_there_and_nothing_of_another_namespace(
    database: Database, there: Database
) -> None:
    async with open_store(there) as store:
        keys = ("k", "1", "é", "a'b", "a\x00b") if isinstance(database, SqliteDatabase) else ("k",)
        for key in keys:
            await store.aput(("jo", "doe"), key, {"key": key})
        reads = [GetOp(("jo", "doe"), key) for key in (*keys, "a", keys[0])]
        found = [
            item and item.value["key"] for item in cast("list[Any]", await store.abatch(reads))
        ]
        assert found == [*keys, None, keys[0]]
        with pytest.raises(InvalidNamespaceError):
            await store.abatch([GetOp(("jo.doe",), "k")])


async def test_processes_that_start_together_make_the_tables_once(url: str, tmp_path: Path) -> None:
    databases = [open_database(url, tmp_path / "threads.sqlite") for _ in range(4)]
    await asyncio.gather(*map(check_database, databases))
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(databases[0]))
        await Mailbox(store).put("thread", {"mode": "ask"})
        stack.push_async_callback(databases[0].close)


async def test_settings_and_what_was_taken_in_come_from_an_older_version(tmp_path: Path) -> None:
    file = tmp_path / "threads.sqlite"
    with closing(sqlite3.connect(file)) as older, older:
        older.execute("CREATE TABLE host_settings (thread_id, name, value, revision INTEGER)")
        rows = [("old", "mode", '"code"', 3), ("old", "limit", "null", 9)]
        older.executemany("INSERT INTO host_settings VALUES (?, ?, ?, ?)", rows)
    database = open_database("", file)
    for _ in range(2):
        await prepare_tables(database)
        async with open_store(database) as store:
            news = await Mailbox(store).find_news("old", 3)
            assert news == {"limit": None, REVISION: {"mode": "3", "limit": "9"}}
            assert await Mailbox(store).find_news("old", news[REVISION]) == {}
    await database.close()


async def test_tables_are_removed_when_nobody_uses_them(postgres: Postgres) -> None:
    """One that initdb makes without a language: each run ended at once, without a word."""
    url = postgres.make_database()
    database, other = (open_database(url, Path("unused")) for _ in range(2))
    await prepare_tables(other)
    with pytest.raises(StorageError, match="is in use; stop the servers and editors first"):
        await drop_tables(database)
    assert await other.list_columns("checkpoints")
    await other.close()
    told: list[str] = []
    while "nothing to remove" not in str(told):
        with suppress(StorageError):  # Postgres needs a moment to see that somebody has left
            told += await drop_tables(database)
    assert f"{database.name}: removed the table store" in told
    name = f"t{uuid4().hex}"
    url = postgres.make_database()
    make = f"CREATE DATABASE \"{name}\" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(make.encode())
    with pytest.raises(StorageError, match="has the encoding SQL_ASCII; make a database"):
        await check_database(open_database(f"{url.rpartition('/')[0]}/{name}", Path("unused")))


async def test_a_server_that_goes_away_and_comes_back(postgres: Postgres, workspace: Path) -> None:
    url = postgres.make_database()
    database = open_database(url, Path("unused"), timeout=3)
    await prepare_tables(database)
    async with open_saver(database) as saver, open_store(database) as store:
        talk = Conversation(make_agent(workspace, saver=saver, store=store))
        await talk.say("write a.txt: x", mode="code")
        postgres.stop()
        with pytest.raises(Exception, match=r"server closed|connection|refused|terminated"):
            await talk.decide(APPROVE)
        assert list(workspace.iterdir()) == []
        with pytest.raises(StorageError, match="cannot be used now"):
            await check_database(open_database(url, Path("unused")))
        postgres.start()
        await talk.decide(APPROVE)
        assert (workspace / "a.txt").read_text() == "x"
    await database.close()


def read_elsewhere(file: Path) -> str:
    """What another program reads, which closes the database then."""
    code = "import sqlite3, sys; database = sqlite3.connect(sys.argv[1])"
    code += "; print(*next(database.execute('SELECT count(*) FROM checkpoints'))); database.close()"
    command = [sys.executable, "-c", code, str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


async def test_what_is_written_outlives_another_program_that_reads(tmp_path: Path) -> None:
    """It did not once the file had been opened a second time here, and not by SQLite."""
    file = tmp_path / "threads.sqlite"
    settings = Settings(workspace=tmp_path)
    async with open_threads(settings, file) as (database, saver, _), open_threads(settings, file):
        assert read_elsewhere(file) == "0"
        place: Any = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}
        await saver.aput(place, empty_checkpoint(), {}, {})
        assert await read_newest(database, "one") == {}
        assert read_elsewhere(file) == "1"


async def test_an_older_thread_has_todays_keys(database: Database, there: Database) -> None:
    await prepare_tables(database)
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"phase": "acting", "plan": [["call"]]}
    checkpoint["channel_versions"] = dict.fromkeys(checkpoint["channel_values"], "1")
    async with open_saver(database) as saver, open_saver(there) as other:
        await saver.aput(config, checkpoint, {}, checkpoint["channel_versions"])
        saved = await other.aget_tuple(config)
    assert saved is not None
    assert saved.checkpoint["channel_values"] == {"phase": "acting", "due_calls": [["call"]]}


@pytest.mark.parametrize(
    "values", [{"plan": "mine"}, {"phase": "x", "plan": "mine", "due_calls": []}]
)
def test_a_key_of_the_clones_own_that_is_called_so_stays(values: dict[str, Any]) -> None:
    saved: Any = CheckpointTuple({}, {**empty_checkpoint(), "channel_values": {**values}}, {})
    assert rename_keys(saved).checkpoint["channel_values"] == values  # type: ignore[union-attr]
