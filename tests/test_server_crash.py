"""The real dev server, killed as by a power cut, and started again."""

import asyncio
from pathlib import Path

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.conversation import APPROVE, until
from tests.server import Thread, running


async def test_an_interrupt_outlives_the_server(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        async with server.client as client:
            thread = await Thread.new(client)
            await thread.say("write kept.txt: hello", mode="code")
            before = await thread.waiting()
        server.kill()
        server.start()
        async with server.client as client:
            again = await reopened(client, thread)
            assert await again.waiting() == before
            await again.decide(APPROVE)
        assert (server.workspace / "kept.txt").read_text() == "hello"


@pytest.mark.parametrize("goes_on", ["message", "resume"])
async def test_a_call_is_not_run_again(tmp_path: Path, goes_on: str) -> None:
    """Killed while the second call runs: the first has run once, and so has the second."""
    with running(tmp_path) as server:
        log = server.workspace / "log"
        async with server.client as client:
            thread = await Thread.new(client)
            slow = "run sleep 1; echo two >> log; sleep 9"
            await thread.say(f"run echo one >> log & {slow}", mode="code")
            run = asyncio.create_task(thread.decide(APPROVE, APPROVE))
            await until(lambda: log.exists() and "two" in log.read_text())
            server.kill()
            await asyncio.gather(run, return_exceptions=True)
        server.start()
        async with server.client as client:
            again = await reopened(client, thread)
            messages = (await again.values())["messages"]
            assert [message["type"] for message in messages] == ["human", "ai", "tool"]
            await (again.say("read log") if goes_on == "message" else again.run(input=None))
            messages = (await again.values())["messages"]
            assert [message["type"] for message in messages[:4]] == ["human", "ai", "tool", "tool"]
            assert "may have taken effect" in messages[3]["content"]
            assert messages[-1]["type"] == "ai"
        assert log.read_text() == "one\ntwo\n"


async def reopened(client: LangGraphClient, thread: Thread) -> Thread:
    """The thread on the restarted server, which may not have saved its list of threads."""
    await client.threads.create(thread_id=thread.id, if_exists="do_nothing", graph_id="agent")
    return Thread(client, thread.id)
