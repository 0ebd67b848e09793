"""The dev server with real clients of providers: words as they come, and the key nowhere."""

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph_sdk.client import LangGraphClient

from tests.harness.server import Server, Thread, running
from tests.provider.script import Answer, Failure, Step, say
from tests.provider.server import KEY, ScriptedProvider, serving

MODES = """\
customModes:
  - slug: claude
    name: Claude
    roleDefinition: You help.
    groups: [read]
    model: anthropic:claude-sonnet-5-5
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
    (folder / "home" / "custom_modes.yaml").write_text(MODES)
    with running(folder, MODEL="openai:gpt-5.5", **provider.settings) as server:
        yield server


@pytest.mark.parametrize("mode", ["ask", "claude"])
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


async def test_the_key_is_nowhere(server: Server, client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    await thread.say("Please fail.")
    assert thread.error is not None
    assert "did not answer" in thread.error["message"]
    assert "quota" in thread.error["message"]
    assert KEY not in server.log.read_text()
    for file in Path(server.folder).rglob("*"):
        if file.is_file() and file.suffix in (".sqlite", ".sqlite-wal", ".pckl", ".txt"):
            assert KEY.encode() not in file.read_bytes(), file
