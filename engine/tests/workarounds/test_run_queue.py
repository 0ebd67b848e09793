"""The queue of the dev server is woken; each test with a server shows that it has these names."""

import asyncio
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from modeshift.workarounds import langgraph_runtime
from tests.harness.conversation import SECONDS


async def test_a_new_run_wakes_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    class Runs:
        @staticmethod
        async def put(run: str) -> str:
            runs.append(run)
            return run

        @staticmethod
        async def next(wait: bool, limit: int = 1) -> AsyncIterator[str]:
            assert not wait, "it would sleep, and miss what comes meanwhile"
            for run in runs[:limit]:  # the oldest
                if run != "for a busy thread":
                    runs.remove(run)
                    yield run

        @staticmethod
        async def get(conn: Any, run: str) -> int:
            return int(conn.store["runs"].index(run))

    async def look() -> list[str]:
        return [run async for run in Runs.next(wait=True, limit=1)]

    monkeypatch.setitem(sys.modules, "langgraph_runtime_inmem.ops", SimpleNamespace(Runs=Runs))
    monkeypatch.setattr(langgraph_runtime, "SECONDS", 3600)
    langgraph_runtime.start_runs_at_once(lambda: False)
    conn = SimpleNamespace(store={"runs": ["old", "new"], "threads": []})
    assert await Runs.get(conn, "new") == 0, "a client waits for a run that is new, among many"
    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    assert await asyncio.to_thread(asyncio.run, Runs.put("first")) == "first"
    assert await asyncio.wait_for(looking, SECONDS) == ["first"]
    for run in ("for a busy thread", "second", "third"):
        await Runs.put(run)
    assert await asyncio.wait_for(look(), SECONDS) == ["second"], "one, as was asked"
    for steps in range(6):  # the server can be stopped at any moment
        looking = asyncio.create_task(look())
        await asyncio.sleep(0)
        await Runs.put("later")
        for _ in range(steps):
            await asyncio.sleep(0)
        is_over = looking.done()
        looking.cancel()
        await asyncio.wait({looking}, timeout=SECONDS)
        assert looking.cancelled() or is_over, steps
