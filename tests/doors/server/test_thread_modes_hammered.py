"""Hundreds of changes of a thread's mode and limit from two clients, while runs go on."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import BaseMessage

from tests.harness.conversation import until
from tests.harness.server import Server, Thread, running
from tests.provider.script import Answer, Call, Step
from tests.provider.server import KEY, serving

pytestmark = pytest.mark.slow
EACH = 60
"""Changes by each client before the server is killed, and again after it."""


async def patch(http: httpx.AsyncClient, id: str, **given: Any) -> dict[str, Any]:
    answer = await http.patch(f"/threads/{id}/mode", json=given)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


class Pause:
    """Both clients rest now and then, with the limit lifted, until the run has written a file."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._barrier = asyncio.Barrier(2)

    def list_files(self) -> set[str]:
        return {file.name for file in self.workspace.iterdir()}

    async def rest(self) -> None:
        await self._barrier.wait()
        before = self.list_files()
        await until(lambda: self.list_files() != before)
        await self._barrier.wait()


async def toggle_limit(http: httpx.AsyncClient, id: str, pause: Pause) -> int:
    """Set a limit and lift it; gives how often nothing had begun, and then nothing was written."""
    quiet = 0
    for number in range(1, EACH + 1, 2):
        shown = await patch(http, id, limit="ask")
        assert shown["limit"] == "ask"
        if not shown["begun"]:
            before = pause.list_files()
            await asyncio.sleep(0.03)
            assert pause.list_files() == before
            quiet += 1
        await patch(http, id, limit=None)
        if (number + 1) % 10 == 0:
            await pause.rest()
    return quiet


async def toggle_mode(http: httpx.AsyncClient, id: str, pause: Pause) -> None:
    for number in range(1, EACH + 1):
        slug = ("debug", "code")[number % 2]
        assert (await patch(http, id, mode=slug))["mode"] == slug
        if number % 10 == 0:
            await pause.rest()


async def keep_running(thread: Thread) -> None:
    """Runs, one after the other; the server may be killed meanwhile."""
    while True:
        await thread.say("go on")


async def hammer(server: Server, id: str | None) -> tuple[str, int]:
    """Gives the thread's id, and how often the limit was seen to hold."""
    async with server.client as client:
        thread = await Thread.new(client) if id is None else Thread(client, id)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            await patch(http, thread.id, mode="code", limit=None, approvals="auto")
            run = asyncio.create_task(keep_running(thread))
            pause = Pause(server.workspace)
            async with asyncio.TaskGroup() as both:  # one waits for the other
                limits = both.create_task(toggle_limit(http, thread.id, pause))
                both.create_task(toggle_mode(http, thread.id, pause))
            await patch(http, thread.id, limit="architect")
            server.kill()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
    return thread.id, limits.result()


async def test_none_is_lost_and_no_call_is_beyond_them(tmp_path: Path) -> None:
    number = 0

    def answer(_: Sequence[BaseMessage]) -> Step:
        nonlocal number
        number += 1
        time.sleep(0.1)  # or the history would be long soon, which the server sends each time
        return Answer("", (Call("write_file", {"path": f"f{number}.txt", "content": "x"}),))

    with serving(answer) as provider:
        given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{provider.url}/v1"}
        with running(tmp_path, MODEL="openai:gpt-5.5", **given) as server:
            id, first = await hammer(server, None)
            server.start(MODEL="openai:gpt-5.5", **given)
            # The server's own list of threads may be lost with it.
            async with server.client as client:
                await client.threads.create(thread_id=id, if_exists="do_nothing")
                shown: Any = await client.http.get(f"/threads/{id}/mode")
                assert (shown["mode"], shown["limit"]) == ("debug", "architect")
            written = len(list(server.workspace.iterdir()))
            id, second = await hammer(server, id)
            assert written >= EACH // 10, "runs went on"
            assert len(list(server.workspace.iterdir())) >= written + EACH // 10, (
                "after the crash, too"
            )
            assert min(first, second) >= EACH // 10, "the limit was seen to hold"
            server.start(MODEL="openai:gpt-5.5", **given)
            async with server.client as client:
                await client.threads.create(thread_id=id, if_exists="do_nothing")
                thread = Thread(client, id)
                before = len(list(server.workspace.iterdir()))
                run = asyncio.create_task(thread.say("go"))
                async with asyncio.timeout(60):
                    while "what Architect mode may do" not in str(await thread.values()):
                        await asyncio.sleep(0.1)
                run.cancel()
                assert len(list(server.workspace.iterdir())) == before
                values = await thread.values()
                assert (values["mode"], values["limit"]) == ("debug", "architect")
