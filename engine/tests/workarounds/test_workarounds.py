"""Each workaround is needed still: where a test fails, the library has what was missing."""

import asyncio
import inspect
import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base import id as ids
from langgraph.graph import message
from langgraph_runtime_inmem import database, ops, queue  # type: ignore[import-untyped]
from openai import AsyncOpenAI
from pydantic import BaseModel
from structlog.stdlib import BoundLogger

from modeshift.workarounds import langgraph_runtime
from modeshift.workarounds.langgraph import make_ids_after
from modeshift.workarounds.openai import WHOLE, tell_ends_apart
from modeshift.workarounds.pydantic import leaving_out_docstrings
from modeshift.workarounds.structlog import LevelFirst
from tests.harness.conversation import SECONDS

DAY = 86_400 * 10**9
ID = uuid4()


def test_ids_of_checkpoints_go_back_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    newest = str(ids.uuid6())
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)  # as in another process
    monkeypatch.setattr(time, "time_ns", lambda: now - DAY)
    assert str(ids.uuid6()) < newest
    saved = CheckpointTuple({}, {**empty_checkpoint(), "id": newest}, {})
    assert make_ids_after(saved) is saved
    later = ids.uuid6()
    assert str(later) > newest
    assert later.time - ids.UUID(newest).time < DAY


def test_what_langgraph_and_its_dev_server_lack() -> None:
    spec = find_spec("langgraph_api")
    assert spec is not None
    folder = next(iter(spec.submodule_search_locations or ()))
    adapter = (Path(folder) / "_checkpointer/_adapter.py").read_text(encoding="utf-8")
    assert "def aget_tuple(" in adapter
    assert "aget_delta_channel_history" not in adapter
    look = inspect.getsource(ops.Runs.next)
    assert "await asyncio.sleep(0.5)" in look
    assert "zip(range(limit), pending_runs" in look
    assert {*inspect.signature(ops.Runs.next).parameters} == {"wait", "limit"}
    scan = '(t for t in conn.store["threads"] if t["thread_id"] == thread_id)'
    assert all(scan in inspect.getsource(f) for f in (ops.Runs.put, ops.Threads.set_joint_status))
    assert all(isinstance(database.GLOBAL_STORE[name], list) for name in ("runs", "threads"))
    assert not hasattr(message, "messages_delta_reducer"), "take this one"


class Threads(ThreadPoolExecutor):
    """Counts what it is given."""

    count = 0

    def submit(self, *args: Any, **named: Any) -> Any:
        self.count += 1
        return super().submit(*args, **named)


async def test_a_line_that_nobody_sees_takes_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    logger, threads = logging.getLogger("lines"), Threads(1)
    asyncio.get_running_loop().set_default_executor(threads)
    for kind, count in ((BoundLogger, 2), (LevelFirst, 0)):
        lines, threads.count = kind(logger, [lambda *given: given[2]["event"]], {}), 0
        logger.setLevel(logging.WARNING)
        await lines.ainfo("unseen")
        await lines.adebug("unseen")
        assert threads.count == count
        logger.setLevel(logging.DEBUG)
        await lines.ainfo("seen")
        await lines.adebug("seen too")
    assert caplog.messages == ["seen", "seen too"] * 2


async def read_stream(end: str, *, is_told: bool) -> list[Any]:
    chunk = '{"id":"1","choices":[{"index":0,"delta":{"content":"a"}}]}'

    def answer(_: httpx.Request) -> httpx.Response:
        text = f"data: {chunk}\n\n{end}"
        return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})

    http: Any = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    async with http:
        client = AsyncOpenAI(api_key="any", base_url="http://127.0.0.1", http_client=http)
        if is_told:
            tell_ends_apart(client)
        asked: Any = client.chat.completions.create
        stream = await asked(model="any", messages=[], stream=True)
        return [part.choices[0].finish_reason async for part in stream]


async def test_openais_client_ends_a_whole_stream_and_a_broken_one_alike() -> None:
    done = "data: [DONE]\n\n"
    assert await read_stream(done, is_told=False) == await read_stream("", is_told=False)
    assert await read_stream(done, is_told=True) == [None, WHOLE]
    assert await read_stream("", is_told=True) == [None]


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


COUNT = """
import langgraph.graph, sys
print(sum(name.startswith("langsmith.types.") for name in sys.modules))
"""
ASK = """
from langsmith import types
from langsmith.types import Issue
from langsmith.types.issue import Issue as same
assert Issue is same
types.Issue = "changed"
try:
    types.NoSuchThing
except AttributeError as error:
    print(error)
assert types.Issue == "changed", "it runs once"
print(sum(name[0].isupper() for name in vars(types)))
"""


def test_langgraph_imports_all_types_of_langsmith() -> None:
    later = "from modeshift.workarounds.langsmith import load_types_later as go; go(); go()\n"
    imported, words, types = run(later + COUNT + ASK).splitlines()
    assert int(imported) < 10
    assert "no attribute 'NoSuchThing'" in words
    imported, _, all_types = run(COUNT + ASK).splitlines()
    assert int(imported) > 100
    assert types == all_types


def test_who_asks_at_the_same_time_gets_the_type() -> None:
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
from modeshift.workarounds.langsmith import load_types_later
load_types_later()
sys.setswitchinterval(1e-5)
from langsmith import types
with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(lambda _: types.Issue, range(8)))))
"""
    assert run(script) == "1\n"


def test_the_editors_sdk_reads_descriptions_from_its_source() -> None:
    """In an import a third of the time; in a model that somebody else defines they stay."""
    script = """
import sys
from modeshift.workarounds.pydantic import leaving_out_docstrings
from modeshift.workarounds.structlog import LevelFirst
if len(sys.argv) > 1:
    from acp.schema import ClientCapabilities as model
else:
    with leaving_out_docstrings():
        from acp.schema import ClientCapabilities as model
print(sum(field.description is not None for field in model.model_fields.values()))
"""
    assert int(run(script, "with them")) > 0
    assert int(run(script)) == 0

    class Described(BaseModel, use_attribute_docstrings=True):
        name: str
        """Its name."""

    with pytest.raises(KeyError), leaving_out_docstrings():
        raise KeyError

    class Again(BaseModel, use_attribute_docstrings=True):
        name: str
        """Its name."""

    described = [model.model_fields["name"].description for model in (Described, Again)]
    assert described == ["Its name."] * 2


@pytest.fixture
def dev_server(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The store of a dev server with the workaround, which has one thread for each letter."""
    for name in ("DATABASE_URI", "REDIS_URI"):  # its configuration has no default for them
        monkeypatch.setenv(name, "")
    of_threads = ("set_joint_status", "delete")
    for owner, names in ((ops.Runs, ("put", "next", "get")), (ops.Threads, of_threads)):
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))
    assistant = {"assistant_id": ID, "graph_id": "agent", "config": {}, "metadata": {}}
    threads = [
        {"thread_id": UUID(letter * 32), "status": "idle", "metadata": {}, "config": {}}
        for letter in "abcdef"
    ]
    store = {"runs": [], "threads": threads, "assistants": [assistant], "crons": []}
    monkeypatch.setattr(database, "GLOBAL_STORE", store)
    monkeypatch.setattr(langgraph_runtime, "SECONDS", 3600)
    langgraph_runtime.start_runs_at_once(lambda: False)
    return store


async def put(letter: str, status: str = "pending") -> UUID:
    """A new run of the letter's thread."""
    async with ops.connect() as connection:
        made = await ops.Runs.put(
            connection, ID, {}, thread_id=letter * 32, run_id=uuid4(), status=status, metadata={},
            prevent_insert_if_inflight=False,
        )  # fmt: skip
        return UUID(str((await anext(made))["run_id"]))


async def take(limit: int = 1, *, wait: bool = False) -> list[str]:
    """The letters of the threads whose run is taken next."""
    return [run["thread_id"].hex[0] async for run, attempt in ops.Runs.next(wait=wait, limit=limit)]


async def end(letter: str, run: UUID, status: str = "success") -> None:
    async with ops.connect() as connection:
        await ops.Threads.set_joint_status(connection, letter * 32, run, status, "agent")


async def test_a_new_run_wakes_the_queue(dev_server: dict[str, list[Any]]) -> None:
    looking = asyncio.create_task(take(wait=True))
    await asyncio.sleep(0)
    await put("a")
    assert await asyncio.wait_for(looking, SECONDS) == ["a"]
    for letter in "abcc":
        await put(letter)
    await put("d", "success")
    assert await asyncio.wait_for(take(wait=True), SECONDS) == ["b"], (
        "one, as was asked, and not the busy"
    )


async def test_the_end_of_a_run_wakes_the_queue_for_the_next_of_its_thread(
    dev_server: dict[str, list[Any]],
) -> None:
    first = await put("a")
    await put("a")
    assert await take() == ["a"]
    looking = asyncio.create_task(take(wait=True))
    await asyncio.sleep(0)
    await asyncio.create_task(end("a", first))
    assert await asyncio.wait_for(looking, SECONDS) == ["a"]


async def test_runs_wait_for_their_thread_alone(dev_server: dict[str, list[Any]]) -> None:
    first = await put("a")
    for letter in "aabb":
        await put(letter)
    assert await take(10) == ["a", "b"], "one of each thread, the oldest first"
    await end("a", first)
    assert [run["status"] for run in dev_server["runs"]] == [
        *("success", "pending", "pending", "running", "pending")
    ]
    assert dev_server["threads"][0]["status"] == "busy", "two more wait"
    dev_server["threads"].pop(0)
    await put("c")
    assert await take(10) == ["c"], "what has no thread is left"


@pytest.mark.parametrize("how", ["cancelled", "deleted with its thread"])
async def test_no_run_begins_while_an_earlier_one_of_its_thread_still_ends(
    dev_server: dict[str, list[Any]], how: str
) -> None:
    """A call that was stopped may go on for a while, and its results come then."""
    first, ends = await put("a"), asyncio.Event()
    assert await take(10) == ["a"]
    worker = asyncio.create_task(ends.wait(), name=f"run-{first}-attempt-1")
    queue.WORKERS.add(worker)
    worker.add_done_callback(queue.WORKERS.discard)
    async with ops.connect() as connection:
        if how == "cancelled":
            await ops.Runs.cancel(connection, [first], thread_id="a" * 32)
        else:
            deleted = dev_server["threads"][0]
            await ops.Threads.delete(connection, UUID("a" * 32))
            dev_server["threads"].append(deleted)
    await put("a")
    await put("b")
    assert await take(10) == ["b"]
    ends.set()
    await asyncio.wait({worker})
    await asyncio.sleep(0)
    assert await take(10) == ["a"]


async def test_what_is_looked_for_is_found_wherever_it_stands(
    dev_server: dict[str, list[Any]],
) -> None:
    """And in lists that the server replaces; where a run is rolled back, it is deleted."""
    runs = {letter: await put(letter) for letter in "fab"}
    async with ops.connect() as connection:
        for letter, run in runs.items():
            found = await ops.Runs.get(connection, run, thread_id=letter * 32)
            assert (await anext(found))["thread_id"] == UUID(letter * 32)
    assert await take(2) == ["f", "a"]
    await end("a", runs["a"], "rollback")
    assert [run["thread_id"].hex[0] for run in dev_server["runs"]] == ["f", "b"]
    async with ops.connect() as connection:
        await ops.Threads.delete(connection, UUID("f" * 32))
    await put("c")
    assert [run["thread_id"].hex[0] for run in dev_server["runs"]] == ["b", "c"]


async def test_of_threads_that_are_deleted_at_once_no_other_is_gone(
    dev_server: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def delete_slowly(*_: object) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(ops, "_delete_checkpoints_for_thread", delete_slowly)
    async with ops.connect() as connection:
        deleted = (ops.Threads.delete(connection, UUID(letter * 32)) for letter in "abd")
        await asyncio.gather(*deleted)
    assert [thread["thread_id"].hex[0] for thread in dev_server["threads"]] == ["c", "e", "f"]


async def test_the_queue_can_be_stopped_at_any_moment(dev_server: dict[str, list[Any]]) -> None:
    for steps, letter in enumerate("abcdef"):
        looking = asyncio.create_task(take(wait=True))
        await asyncio.sleep(0)
        await put(letter)
        for _ in range(steps):
            await asyncio.sleep(0)
        is_over = looking.done()
        looking.cancel()
        await asyncio.wait({looking}, timeout=SECONDS)
        assert looking.cancelled() or is_over, steps
