"""The dev server with real clients of providers: words as they come, and errors as they are."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from tests.harness.server import Server, Thread, running
from tests.provider.script import Answer, Call, Failure, Step, say
from tests.provider.server import KEY, ScriptedProvider, serving

MODES = """\
customModes:
  - slug: claude
    name: Claude
    roleDefinition: You help.
    groups: [read]
    model: anthropic:claude-sonnet-5-5
"""
LOOK = Answer("", (Call("search_files", {"regex": "needle " * 9}),), pause=0.05)
SLOW = Answer("Once upon a time there was an agent that worked in modes.", pause=0.3)


def script(messages: Sequence[BaseMessage]) -> Step:
    last = messages[-1].text
    if last.endswith("fail."):
        return Failure("quota", retry_after="0.01")
    if last.endswith("Look."):
        return LOOK
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
    settings = {
        "MODEL": "openai:gpt-5.5",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": provider.url,
    }
    with running(folder, **settings) as server:
        yield server


@pytest.mark.parametrize("mode", ["ask", "claude"])
async def test_text_is_streamed_while_the_provider_sends_it(
    server: Server, provider: ScriptedProvider, mode: str
) -> None:
    async with server.client as client:
        thread = await Thread.new(client)
        message = {"role": "user", "content": "Tell me a story."}
        words, first = "", 0.0
        given: Any = {"messages": [message], "mode": mode}
        async for event in client.runs.stream(
            thread.id, "agent", input=given, stream_mode="messages-tuple"
        ):
            if event.event == "messages" and event.data[0]["type"] == "AIMessageChunk":
                content = event.data[0]["content"]
                blocks = content if isinstance(content, list) else [{"text": content}]
                words += "".join(block.get("text", "") for block in blocks)
                first = first or (time.monotonic() if words else 0.0)
        assert words == SLOW.text
        assert 0 < first < provider.last_event
        messages = (await thread.values())["messages"]
        assert messages[-1]["content"] == SLOW.text


@pytest.mark.parametrize("mode", ["ask", "claude"])
async def test_tool_calls_are_streamed(server: Server, mode: str) -> None:
    async with server.client as client:
        thread = await Thread.new(client)
        given: Any = {"messages": [{"role": "user", "content": "Look."}], "mode": mode}
        pieces = [
            piece["args"] or ""
            async for event in client.runs.stream(
                thread.id, "agent", input=given, stream_mode="messages-tuple"
            )
            if event.event == "messages"
            for piece in event.data[0].get("tool_call_chunks", ())
        ]
        assert len(pieces) > 4
        assert json.loads("".join(pieces)) == LOOK.calls[0].args


@pytest.mark.parametrize("mode", ["ask", "claude"])
async def test_a_provider_error_is_shown_and_the_thread_goes_on(
    server: Server, provider: ScriptedProvider, mode: str
) -> None:
    async with server.client as client:
        thread = await Thread.new(client)
        await thread.say("Please fail.", mode=mode)
        assert thread.error is not None
        assert thread.error["error"] == "ProviderError"
        assert "did not answer" in thread.error["message"]
        assert ("quota" if mode == "ask" else "credit") in thread.error["message"]
        await thread.say("And now?")
        assert thread.error is None
        assert (await thread.values())["messages"][-1]["content"] == "Here I am."
        assert provider.refused == []


def test_the_key_is_nowhere(server: Server) -> None:
    assert KEY not in server.log.read_text()
    for file in Path(server.folder).rglob("*"):
        if file.is_file() and file.suffix in (".sqlite", ".sqlite-wal", ".pckl", ".txt"):
            assert KEY.encode() not in file.read_bytes(), file
