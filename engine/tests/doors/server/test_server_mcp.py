"""MCP servers on the real dev server: over stdio in the sandbox, and over HTTP."""

import asyncio
import json
import sys
from collections.abc import Iterator

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.harness.conversation import APPROVE, SECONDS
from tests.harness.server import Server, Thread
from tests.tools.mcp.servers import TOY, serving_toy


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("clone"))
    with serving_toy() as port:
        entries = {
            "here": {"command": sys.executable, "args": [str(TOY)]},
            "there": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"},
        }
        (server.home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        server.start(SANDBOX="auto")
        yield server
        server.kill()


@pytest.fixture(autouse=True)
async def is_ready(client: LangGraphClient) -> None:
    """Conversations wait 10 s for a server, then its tools come later."""
    asked = list[str]()
    async with asyncio.timeout(SECONDS):
        while asked != ["mcp__here__get_time"]:
            thread = await Thread.new(client)
            await thread.say("call mcp__here__get_time")
            asked = [request["name"] for request in await thread.waiting()]


async def test_calls_ask_run_and_are_remembered(server: Server, client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    for name in ("mcp__here__get_time", "mcp__there__get_time"):
        await thread.say(f'call {name} {{"zone": "Rome"}}')
        (asked,) = await thread.waiting()
        assert asked["name"] == name
        question = await client.http.get(f"/threads/{thread.id}/question")
        preview = question["previews"][0]
        assert preview["server"] == name.split("__")[1]
        assert ("host" in preview) == (name == "mcp__there__get_time")
        await thread.decide({**APPROVE, "remember": True})
        assert "noon in Rome" in str((await thread.values())["messages"][-1])
        await thread.say(f'call {name} {{"zone": "Oslo"}}')
        assert not await thread.waiting()
        assert "noon in Oslo" in str((await thread.values())["messages"][-1])
    await thread.say("call mcp__here__set_time {}")
    # Ask mode does not have it, so the model asks for another.
    assert [request["name"] for request in await thread.waiting()] == ["switch_mode"]
