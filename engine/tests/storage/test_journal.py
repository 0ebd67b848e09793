"""The journal on both databases: what a second comer finds, whoever began it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from modeshift.configuration.databases import list_database_files, list_own_files
from modeshift.configuration.settings import load_settings
from modeshift.messages.repair import DONE, UNKNOWN
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.facts import Done, end_unseen
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import JOURNAL_TABLES
from modeshift.storage.opening import open_database
from modeshift.storage.threads import open_saver, prepare_tables
from modeshift.threads.journal import UNREADABLE, BegunCall, FileDigests, Journal, RunningCall
from tests.harness.conversation import SECONDS
from tests.harness.postgres import Postgres
from tests.tables import rows

RESULT = ToolMessage("one line", tool_call_id="a", artifact={"line": 1})
CALL = {"name": "edit_file", "args": {}, "id": "a", "type": "tool_call"}
BEFORE, AFTER = {"f": "0"}, {"f": "1"}
FORESEEN = Done(tool="edit_file", mode="code", is_success=True, written=("f",))
RAN = Done(tool="execute_command", mode="code", is_success=False, line="a\ud800", exit_code=1)
Make = Callable[..., Journal]


@pytest.fixture
async def make(url: str, tmp_path: Path) -> AsyncIterator[Make]:
    """Journals as several processes have them; ``machine`` is the folder of their locks."""
    databases: list[Database] = []

    def make(machine: str = "one", lease: float = 30) -> Journal:
        databases.append(open_database(url, tmp_path / "threads.sqlite"))
        (tmp_path / machine).mkdir(exist_ok=True)
        return Journal(databases[-1], tmp_path / machine / "threads", lease)

    yield make
    for database in databases:
        await database.close()


def digesting(now: FileDigests) -> Callable[[FileDigests], "asyncio.Future[FileDigests]"]:
    async def digest(_: FileDigests) -> FileDigests:
        return now

    return lambda files: asyncio.ensure_future(digest(files))


async def start(
    journal: Journal, before: FileDigests = BEFORE, after: FileDigests = AFTER, key: str = "key"
) -> RunningCall | None:
    return await journal.hold("thread").begin(key, "edit_file", before, after, FORESEEN)


async def begin(*given: Any, **more: Any) -> RunningCall:
    call = await start(*given, **more)
    assert call is not None
    return call


async def find(journal: Journal, now: FileDigests) -> BegunCall:
    effect = await journal.find("key", digesting(now))
    assert effect is not None
    return effect


async def test_a_result_is_given_to_whoever_comes(make: Make) -> None:
    journal = make()
    assert await journal.find("key", digesting({})) is None
    call = await begin(journal)
    assert not await start(journal)
    await call.finish(RESULT, AFTER, RAN)
    call.leave()
    for each in (journal, make()):
        assert not await start(each)
        effect = await find(each, {})
        assert (effect.state, effect.after) == ("done", AFTER)
        assert effect.build_result(CALL) == RESULT  # type: ignore[arg-type]
        assert effect.done == RAN


async def test_a_living_owner_is_waited_for(make: Make) -> None:
    first, second = make(), make()
    call = await begin(first)
    assert not await start(first), "a second run of one process"
    for other in (first, second):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await other.find("key", digesting(BEFORE))
    finding = asyncio.create_task(second.find("key", digesting({})))
    await call.finish(RESULT, AFTER, RAN)
    async with asyncio.timeout(SECONDS):
        effect = await finding
    assert effect is not None
    assert effect.result == RESULT


async def test_what_goes_on_is_known_to_every_process(make: Make) -> None:
    first, second = make(), make()
    calls = {}
    for key in ("cut off", "taken back", "ended", "goes on"):
        calls[key] = await first.hold("thread").begin(key, key, BEFORE, AFTER, FORESEEN)
    cut_off, taken_back, ended, _ = filter(None, calls.values())
    cut_off.leave()
    await taken_back.take_back()
    await ended.finish(RESULT, AFTER, RAN)
    assert await first.list_going("thread") == ["goes on"]
    assert await second.list_going("thread") == ["cut off", "goes on"], "as far as it knows"
    assert await second.list_going("another") == []
    del first, calls, cut_off, taken_back, ended, _
    gc.collect()
    assert await second.list_going("thread") == []


@pytest.mark.parametrize("is_killed", [True, False])
@rows(
    "now state told",
    (AFTER, "done", DONE),
    (BEFORE, None, ""),
    ({"f": "2"}, "unknown", UNKNOWN),
    ({"f": UNREADABLE}, "unknown", UNKNOWN),
)
async def test_of_a_dead_owners_edit_the_file_tells(
    make: Make, now: FileDigests, state: str | None, told: str, *, is_killed: bool
) -> None:
    first = make()
    call = await begin(first)
    call.leave()
    finder = first
    if is_killed:
        finder = make()
        del first, call
        gc.collect()
    effect = await finder.find("key", digesting(now))
    assert (effect.state if effect else None) == state
    assert effect is None or effect.done == (FORESEEN if state == "done" else end_unseen("code"))
    if effect is None:
        assert await start(finder)
    else:
        assert effect.build_result(CALL).text == told  # type: ignore[arg-type]
        assert not await start(finder)


@pytest.mark.parametrize("before", [{}, BEFORE])
async def test_a_dead_owners_command_is_unknown_for_good(make: Make, before: FileDigests) -> None:
    """And an edit of which nobody can tell what it was to do."""
    first = make()
    assert await start(first, before, {})
    del first
    gc.collect()
    for journal in (make(), make()):
        effect = await find(journal, before)
        assert effect.state == "unknown"
        assert not await start(journal, {}, {})


async def test_another_process_holds_the_thread_or_answers_first(make: Make) -> None:
    first, second = make(), make()
    await first.hold("thread").take()
    await second.hold("thread").take()
    assert not await start(first)
    with pytest.raises(InvalidInputError, match="another process goes on"):
        await first.hold("thread").check()
    assert await start(second)
    await second.hold("thread").check()
    first, second = make(), make()
    approve, reject = [{"type": "approve"}], [{"type": "reject"}]
    assert await first.find_decisions("thread", "question") is None
    await first.decide("thread", "question", approve, "ann")
    await second.decide("thread", "question", approve, "bob")
    with pytest.raises(InvalidInputError, match=r"before, with approve, and .*; send a "):
        await second.decide("thread", "question", reject, "bob")
    assert await second.find_decisions("thread", "question") == approve
    await first.decide("thread", "both", [*approve, *reject], "ann")
    with pytest.raises(InvalidInputError, match="before, with approve, reject,"):
        await second.decide("thread", "both", [], "bob")


async def test_an_effect_ends_before_a_lease_that_ends(postgres: Postgres, tmp_path: Path) -> None:
    database = open_database(postgres.make_database(), tmp_path, timeout=1)
    call = await begin(Journal(database, tmp_path / "x", 3))
    was_cancelled = False

    async def run() -> None:
        nonlocal was_cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled = True
            raise

    postgres.stop()
    try:
        with pytest.raises(StorageError, match="not heard of for 2 s, so the call was stopped; it"):
            async with asyncio.timeout(SECONDS):
                await call.keep(run())
    finally:
        postgres.start()
    assert was_cancelled
    await database.close()


async def test_a_lease_is_renewed_while_the_call_runs(postgres: Postgres, tmp_path: Path) -> None:
    database = open_database(postgres.make_database(), tmp_path)
    call = await begin(Journal(database, tmp_path / "x", 2))
    ((first,),) = await database.execute("SELECT lease FROM effects")
    is_over = f"SELECT 1 FROM effects WHERE {database.clock} > :lease"  # noqa: S608  # ours

    async def run() -> str:
        while not await database.execute(is_over, lease=first):
            await asyncio.sleep(0.02)
        return "done"

    assert await call.keep(run()) == "done"
    ((renewed,),) = await database.execute("SELECT lease FROM effects")
    assert await database.execute(is_over, lease=renewed) == []
    await database.close()


async def test_one_stopped_past_its_lease_is_over(postgres: Postgres, tmp_path: Path) -> None:
    database = open_database(postgres.make_database(), tmp_path)
    call = await begin(Journal(database, tmp_path / "x", 0.3))
    await asyncio.sleep(0.4)

    async def run() -> None:
        raise AssertionError("it has begun")

    with pytest.raises(StorageError, match="was stopped"):
        await call.keep(run())
    await database.close()


async def test_another_process_asks_for_no_other_approval(tmp_path: Path) -> None:
    """A decision is bound to what commands can reach, and so to the files that are hidden."""
    file = tmp_path / "threads.sqlite"
    settings = load_settings().model_copy(update={"checkpoints": file})
    before = list_own_files(settings)
    journal = Journal(open_database("", file), file)
    await journal.hold("thread").take()
    assert list(tmp_path.glob("*.owner-*"))
    assert list_own_files(settings) == before


async def test_a_thread_that_a_checkpointer_deletes_is_forgotten(url: str, tmp_path: Path) -> None:
    file = tmp_path / "threads.sqlite"
    database = open_database(url, file)
    await prepare_tables(database)
    journal = Journal(database, file)
    async with open_saver(database) as saver:
        await journal.hold("thread").take()
        assert await start(journal)
        assert await journal.take_input("thread", "run")
        assert {path.name for path in list_database_files(file)} >= {
            path.name for path in tmp_path.glob("*.owner-*")
        }
        assert list(tmp_path.glob("*.owner-*"))
        await saver.adelete_thread("thread")
    for table in JOURNAL_TABLES:
        assert not await database.execute(f"SELECT * FROM {table}")  # noqa: S608  # ours
    assert await start(journal)
    assert await journal.take_input("thread", "run")
    await database.close()


async def test_what_is_counted_and_forgotten(make: Make) -> None:
    journal = make()
    failure = ToolMessage("no", tool_call_id="a", status="error")
    for key, result in (("a", RESULT), ("b", failure), ("c", None)):
        call = await begin(journal, key=key)
        if result is not None:
            await call.finish(result, AFTER, RAN)
    states = {"done": 1, "failed": 1, "started": 1}
    assert await make().count_effects() == states
    assert [await journal.take_input("thread", run) for run in "aab"] == [True, False, True]
    assert await journal.take_input("another", "a")
    await journal.delete_thread("another")
    assert await journal.count_effects() == states
    assert not await journal.take_input("thread", "a")
    await journal.delete_thread("thread")
    assert await journal.count_effects() == {}
    assert [await journal.take_input(thread, "a") for thread in ("thread", "another")] == [True] * 2
    assert await journal.read("a") is None
    assert journal.mark("thread") == "database thread"
    assert Journal().mark("thread") != Journal().mark("thread")


async def test_a_result_of_a_call_that_comes_again(make: Make) -> None:
    journal = make()
    taken_back = await start(journal)
    assert taken_back is not None
    await taken_back.take_back()
    taken_back.leave()
    assert await journal.read("key") is None
    call = await begin(journal)
    await RunningCall(journal, "another").take_back()
    call.leave()
    effect = await find(journal, {"f": "2"})
    told = effect.build_result(CALL)  # type: ignore[arg-type]  # it is one
    assert (told.text, told.tool_call_id, told.name, told.status) == (
        *(UNKNOWN, "a", "edit_file", "error"),
    )
    done = replace(effect, state="done").build_result(CALL)  # type: ignore[arg-type]
    assert (done.text, done.tool_call_id, done.name, done.status) == (
        *(DONE, "a", "edit_file", "success"),
    )


async def test_a_checkpoint_is_waited_for(make: Make) -> None:
    saver, checkpoint = InMemorySaver(), empty_checkpoint()
    journal = make()
    waiting = asyncio.create_task(journal.hold("thread").wait_for(saver, checkpoint["id"]))
    assert (await asyncio.wait({waiting}, timeout=0.1))[1] == {waiting}
    place: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    await saver.aput(place, checkpoint, {}, {})
    async with asyncio.timeout(SECONDS):
        await waiting
    await Journal().hold("thread").wait_for(saver, "one that is never stored")
