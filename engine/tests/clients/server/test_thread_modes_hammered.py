"""Over a hundred changes of a thread's mode and limit by two clients, while runs go on."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from langchain_core.messages import BaseMessage

from tests.harness.conversation import until
from tests.harness.server import Server, Thread, running
from tests.provider.script import Answer, Call, Step
from tests.provider.server import serving

pytestmark = pytest.mark.slow
MODEL = "anthropic:claude-sonnet-5-5"
ROUNDS = 2
"""The server is killed at the end of each, while a run goes on."""
CYCLES = 3
WRITES = [("mode", "code"), ("mode", "debug"), ("limit", None), ("limit", "debug")]
"""Settings under which a text file may be written; under the others it may not."""
MODES = ["code", "debug", *["ask", "architect"] * 3, *["code", "debug"] * 2]
LIMITS = [*["ask", "architect"] * 3, *[None, "debug"] * 3]
"""What the two clients set in each cycle; at its end both allow to write."""
LAST = {"mode": "debug", "limit": "architect"}


class Client:
    """Sets one key of a thread over and over, with a connection of its own."""

    def __init__(self, url: str, thread: str, key: str, values: Sequence[str | None]) -> None:
        self.key = key
        self.values = values
        self.changes = self.pending = 0
        self.forbidden: list[tuple[int, int]] = []
        """From when to when nothing may have been written, in nanoseconds."""
        self._path = f"/threads/{thread}/mode"
        self._http = httpx.AsyncClient(base_url=url, timeout=60)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def patch(self, **given: Any) -> list[str]:
        """The tools whose calls go on."""
        answer = await self._http.patch(self._path, json=given)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert given.items() <= shown.items()
        self.changes += 1
        self.pending += shown["is_pending"]
        return list(shown["begun"])

    async def cycle(self) -> None:
        since = None
        for value in self.values:
            allows = (self.key, value) in WRITES
            if allows and since is not None:
                self.forbidden.append((since, time.time_ns()))
                since = None
            begun = await self.patch(**{self.key: value})
            if not allows and since is None and not begun:
                since = time.time_ns()


async def keep_running(thread: Thread) -> None:
    """Runs, one after the other; the server is killed meanwhile."""
    while True:
        await thread.say("go on")


async def hammer(server: Server) -> tuple[str, list[Client]]:
    """The id of a new thread and the clients; at the end the server is killed."""
    async with server.client as sdk:
        thread = await Thread.new(sdk)
        async with (
            Client(server.url, thread.id, "mode", MODES) as modes,
            Client(server.url, thread.id, "limit", LIMITS) as limits,
        ):
            await modes.patch(mode="code", approvals="auto")
            run = asyncio.create_task(keep_running(thread))
            for _ in range(CYCLES):
                await see_a_file_written(server.workspace)
                await asyncio.gather(modes.cycle(), limits.cycle())
            await asyncio.gather(*(modes.patch(**{key: value}) for key, value in LAST.items()))
            server.kill()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
    return thread.id, [modes, limits]


async def see_a_file_written(workspace: Path) -> None:
    before = list_files(workspace)
    await until(lambda: list_files(workspace) != before)


def list_files(workspace: Path) -> dict[str, int]:
    """When each file was written, in nanoseconds."""
    return {file.name: file.stat().st_mtime_ns for file in workspace.glob("*.txt")}


async def test_none_is_lost_and_no_call_is_beyond_them(tmp_path: Path) -> None:
    numbers = count()

    def answer(_: Sequence[BaseMessage]) -> Step:
        time.sleep(0.1)  # or the history would soon be long, which is sent each time
        return Answer("", (Call("write_file", {"path": f"{next(numbers)}.txt", "content": "x"}),))

    clients = list[Client]()
    with serving(answer) as provider:
        given = {**provider.settings, "MODEL": MODEL}
        with running(tmp_path, **given) as server:
            for _ in range(ROUNDS):
                id, both = await hammer(server)
                clients += both
                server.start(**given)
                async with server.client as sdk:
                    # The server's own list of threads may be lost with it.
                    await sdk.threads.create(thread_id=id, if_exists="do_nothing")
                    shown: Any = await sdk.http.get(f"/threads/{id}/mode")
                    assert LAST.items() <= shown.items()
            assert sum(client.changes for client in clients) >= 140
            assert sum(client.pending for client in clients) >= 120, "runs went on"
            written = list_files(server.workspace)
            assert len(written) >= ROUNDS * CYCLES
            forbidden = [span for client in clients for span in client.forbidden]
            assert len(forbidden) >= ROUNDS * CYCLES
            assert [
                name
                for name, when in written.items()
                if any(since < when < until for since, until in forbidden)
            ] == []
            async with server.client as sdk:
                thread = Thread(sdk, id)
                run = asyncio.create_task(thread.say("go"))
                async with asyncio.timeout(60):
                    while [(await thread.values())[key] for key in LAST] != [*LAST.values()]:
                        await asyncio.sleep(0.1)
                asked = len(provider.requests)
                await until(lambda: len(provider.requests) > asked + 1)
                run.cancel()
                assert list_files(server.workspace) == written
