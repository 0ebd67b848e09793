"""The dev server with real clients of providers, and of MCP servers over stdio and HTTP."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph_sdk.client import LangGraphClient

from tests.harness.conversation import APPROVE, SECONDS
from tests.harness.server import Server, Thread, Web, running
from tests.provider.script import Answer, Failure, Step, say
from tests.provider.server import KEY, ScriptedProvider, serving
from tests.tools.mcp.servers import TOY, serving_toy

MODES = """\
customModes:
  - slug: claude
    name: Claude
    roleDefinition: You help.
    groups: [read]
    model: anthropic:claude-sonnet-5-5
  - slug: gpt
    name: GPT
    roleDefinition: You help.
    groups: [read]
    model: openai:gpt-5.5
"""
GO_ON = Semaphore(0)
SLOW = Answer("Once upon a time there was an agent that worked in modes.", go_on=GO_ON)


def script(messages: Sequence[BaseMessage]) -> Step:
    last = messages[-1].text
    if last.endswith("fail."):
        return Failure("quota", retry_after="0.01")
    return SLOW if last.endswith("story.") else say("Here I am.")


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    with serving(script) as provider:
        yield provider


@pytest.fixture(scope="module")
def server(
    provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clone")
    (folder / "home").mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    with serving_toy() as port:
        entries = {
            "here": {"command": sys.executable, "args": [str(TOY)]},
            "there": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"},
        }
        (folder / "home/mcp.json").write_text(json.dumps({"mcpServers": entries}))
        with running(folder, SANDBOX="auto", **provider.settings) as server:
            yield server


@pytest.mark.parametrize("mode", ["gpt", "claude"])
async def test_text_is_streamed_while_the_provider_sends_it(
    client: LangGraphClient, mode: str
) -> None:
    thread = await Thread.new(client)
    words = ""
    async for message in stream(thread, "Tell me a story.", mode):
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"text": content}]
        text = "".join(block.get("text", "") for block in blocks)
        if text and not words:
            GO_ON.release()
        words += text
    assert words == SLOW.text
    assert (await thread.values())["messages"][-1]["content"] == SLOW.text


async def stream(thread: Thread, text: str, mode: str) -> AsyncIterator[Any]:
    """The chunks of the model's messages."""
    given: Any = {"messages": [{"role": "user", "content": text}], "mode": mode}
    async for event in thread.client.runs.stream(
        thread.id, "agent", input=given, stream_mode="messages-tuple"
    ):
        if event.event == "messages" and event.data[0]["type"] == "AIMessageChunk":
            message, about = event.data
            assert about["langgraph_node"] == mode
            yield message


async def test_the_key_is_nowhere(server: Server, web: Web) -> None:
    thread = await web.say("Please fail.", mode="gpt")
    assert thread.error is not None
    assert "did not answer" in thread.error["message"]
    assert "quota" in thread.error["message"]
    assert KEY not in server.log.read_text()
    for file in Path(server.folder).rglob("*"):
        if file.is_file() and file.suffix in (".sqlite", ".sqlite-wal", ".pckl", ".txt"):
            assert KEY.encode() not in file.read_bytes(), file


async def test_calls_ask_run_and_are_remembered(web: Web) -> None:
    names = list[str]()
    async with asyncio.timeout(SECONDS):
        while names != ["mcp__here__get_time"]:  # until the servers are ready
            names = await (await web.say("call mcp__here__get_time")).asked()
    thread = await Thread.new(web.client)
    for name in ("mcp__here__get_time", "mcp__there__get_time"):
        await thread.say(f'call {name} {{"zone": "Rome"}}')
        assert await thread.asked() == [name]
        preview = (await web.get(thread, "question"))["previews"][0]
        assert preview["server"] == name.split("__")[1]
        assert ("host" in preview) == (name == "mcp__there__get_time")
        await thread.decide({**APPROVE, "remember": True})
        assert "noon in Rome" in str((await thread.values())["messages"][-1])
        await thread.say(f'call {name} {{"zone": "Oslo"}}')
        assert not await thread.waiting()
        assert "noon in Oslo" in str((await thread.values())["messages"][-1])
    await thread.say("call mcp__here__set_time {}")
    # Ask mode does not have it, so the model asks for another.
    assert await thread.asked() == ["switch_mode"]
