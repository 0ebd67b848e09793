"""``start_runs_at_once`` and others for ``langgraph-runtime-inmem``; seen with 0.36.7.

The first replaces ``put``, ``next`` and ``get`` of ``langgraph_runtime_inmem.ops.Runs``, and
``set_joint_status`` and ``delete`` of ``Threads``: look here first if a new version of the server
does not start. No issue asks for it yet: "dev server: wake the queue for a new run, let runs of a
busy thread wait without the others, look for a run and its thread among the newest first, and
delete one thread after the other".

LangGraph's dev server looks for new runs twice a second, and takes only those that were there
before it last went to sleep: each message, and each answer of a person, would wait between half a
second and a second. And runs that wait in a busy thread would keep all other threads waiting.

It looks for a run, and for its thread, among all that were ever made, from the oldest on: the rate
of runs fell by half while a server was used.

It looks up where a thread stands in its list, waits, and takes out what stands there then: of two
that were deleted at once, a third was gone.
"""

import asyncio
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

SECONDS = 0.5
"""How long the queue sleeps at most, as in the dev server: a run may also be due later."""


class _Bell:
    """Wakes the loop of the queue from any thread."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self) -> None:
        self._loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            # Not ``wait_for``: until Python 3.12 it drops a cancel that comes with a ring.
            async with asyncio.timeout(SECONDS):
                await self._event.wait()
        self._event.clear()

    def ring(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._event.set)

    def ring_at_end(self) -> None:
        """Ring once this task, a run's, has ended: the next run of its thread is due then."""
        if (task := asyncio.current_task()) is not None:
            task.add_done_callback(lambda _: self.ring())


class _NewestFirst:
    """A list of the dev server's, read from its end."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self.append = items.append

    def __iter__(self) -> Iterator[Any]:
        yield from reversed(self._items)


class _Store:
    """The dev server's store; each list is looked up again, as the server may replace it."""

    def __init__(self, lists: Mapping[str, list[Any]]) -> None:
        self._lists = lists

    def __getitem__(self, name: str) -> _NewestFirst:
        return _NewestFirst(self._lists[name])


def _read_newest_first(connection: Any) -> Any:
    return SimpleNamespace(store=_Store(connection.store))


def find_lists() -> tuple[list[Any], list[Any]] | None:
    """The dev server's lists of runs and threads; None on another server.

    It writes them every ten seconds, and reads them as they are. No issue asks for it yet: "dev
    server: let a checkpointer of one's own correct runs and threads after a crash".
    """
    runtime: Any = sys.modules.get("langgraph_runtime_inmem.database")
    return runtime and (runtime.GLOBAL_STORE["runs"], runtime.GLOBAL_STORE["threads"])


def start_runs_at_once(is_stopping: Callable[[], bool]) -> None:
    """Have each new run wake the queue; without effect on a server that is not the dev server's.

    A run that has not begun when the process ``is_stopping`` waits for its next start.
    """
    ops: Any = sys.modules.get("langgraph_runtime_inmem.ops")
    if ops is None:
        return
    runs, threads, bell = ops.Runs, ops.Threads, _Bell()
    put, get, set_status = runs.put, runs.get, threads.set_joint_status

    async def put_and_ring(connection: Any, *args: object, **kwargs: object) -> object:
        run = await put(_read_newest_first(connection), *args, **kwargs)
        bell.ring()
        return run

    async def wait_and_take(wait: bool, limit: int = 1) -> AsyncIterator[tuple[Any, int]]:
        if wait:
            await bell.wait()
        if is_stopping():
            return
        async with aclosing(_take_due(ops, limit)) as taken:
            async for run in taken:
                yield run

    async def get_from_newest(connection: Any, *args: object, **kwargs: object) -> object:
        return await get(_read_newest_first(connection), *args, **kwargs)

    async def set_status_of_newest(
        connection: Any, thread_id: object, run_id: object, run_status: str, *args: Any, **more: Any
    ) -> None:
        if run_status != "rollback":  # which deletes the run
            connection = _read_newest_first(connection)
        await set_status(connection, thread_id, run_id, run_status, *args, **more)
        bell.ring_at_end()

    runs.put, runs.next = staticmethod(put_and_ring), staticmethod(wait_and_take)
    runs.get = staticmethod(get_from_newest)
    threads.set_joint_status = staticmethod(set_status_of_newest)
    threads.delete = staticmethod(_make_exclusive(threads.delete))


def _make_exclusive(function: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    lock = asyncio.Lock()

    async def call(*args: object, **kwargs: object) -> object:
        async with lock:
            return await function(*args, **kwargs)

    return call


_taken: dict[str, Any] = {}
"""The threads of runs that were taken, by the run's id."""


def has_run(thread: str) -> bool:
    """Whether another run of the thread goes on; where one was stopped, until it has ended."""
    own, busy = asyncio.current_task(), _find_busy()
    name = "" if own is None else _get_run(own)
    return any(str(each) == thread for id, each in busy.items() if id != name)


def _find_busy() -> dict[str, Any]:
    """The threads by the runs that have a task: one that is cancelled is interrupted at once."""
    queue: Any = sys.modules.get("langgraph_runtime_inmem.queue")
    tasks = queue.WORKERS if queue else ()
    going = {_get_run(task) for task in tasks if isinstance(task, asyncio.Task)}
    for id in _taken.keys() - going:
        del _taken[id]
    return _taken


def _get_run(task: asyncio.Task[Any]) -> str:
    """The id of the run whose task it is, by its name."""
    return task.get_name().removeprefix("run-").partition("-attempt-")[0]


async def _take_due(ops: Any, limit: int) -> AsyncGenerator[tuple[Any, int], None]:
    """At most ``limit`` runs, and which attempt each is; they are running then."""
    async with ops.connect() as connection, ops.RUN_LOCK:
        for run in _list_due(connection.store["runs"], {*_find_busy().values()})[:limit]:
            # Its thread may have been deleted, and a client may have taken it back meanwhile.
            threads = reversed(connection.store["threads"])
            has_thread = any(thread["thread_id"] == run["thread_id"] for thread in threads)
            if has_thread and run["status"] == "pending":
                attempt = await connection.retry_counter.increment(run["run_id"])
                run["status"] = "running"
                _taken[str(run["run_id"])] = run["thread_id"]
                yield run, attempt


def _list_due(runs: list[Any], busy: Collection[Any]) -> list[Any]:
    """The oldest run of each thread that has none running, and is not ``busy``."""
    now = datetime.now(UTC)
    due: dict[Any, Any] = {}
    for run in sorted(
        (one for one in runs if one["status"] == "pending" and one["created_at"] < now),
        key=itemgetter("created_at"),
    ):
        if run["thread_id"] not in busy:
            due.setdefault(run["thread_id"], run)
    for run in runs:
        if run["status"] == "running":
            due.pop(run["thread_id"], None)
    return list(due.values())
