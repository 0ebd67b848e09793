"""``start_runs_at_once`` and ``find_lists`` for ``langgraph-runtime-inmem``; seen with 0.36.7.

The first replaces ``put``, ``next`` and ``get`` of ``langgraph_runtime_inmem.ops.Runs``: look here
first if a new version of the server does not start. No issue asks for it yet: "dev
server: wake the queue for a new run, and let runs of a busy thread wait without the others".

LangGraph's dev server looks for new runs twice a second, and takes only those that were there
before it last went to sleep: each message, and each answer of a person, would wait between half a
second and a second. And runs that wait in a busy thread would keep all other threads waiting.

For each waiting client it looks up the client's run, twice a second, among all runs ever made.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
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
    put, look, get, bell = ops.Runs.put, ops.Runs.next, ops.Runs.get, _Bell()

    async def put_and_ring(*args: object, **kwargs: object) -> object:
        run = await put(*args, **kwargs)
        bell.ring()
        return run

    async def wait_and_look(wait: bool, limit: int = 1) -> AsyncIterator[object]:
        if wait:
            await bell.wait()
        if is_stopping():
            return
        # It would look at the oldest ``limit`` runs alone, and those may wait for their thread.
        async with aclosing(look(wait=False, limit=sys.maxsize)) as runs:
            async for run in runs:
                yield run
                if (limit := limit - 1) == 0:
                    return

    async def get_from_newest(conn: Any, *args: object, **kwargs: object) -> object:
        store = {"runs": conn.store["runs"][::-1], "threads": conn.store["threads"]}
        return await get(SimpleNamespace(store=store), *args, **kwargs)

    ops.Runs.put, ops.Runs.next = staticmethod(put_and_ring), staticmethod(wait_and_look)
    ops.Runs.get = staticmethod(get_from_newest)
