"""Changes of mode on the real dev server, with models that bind what they thought."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.doors.server.test_server_crash import reopened
from tests.graph.journey import CLAUDE, GPT, answer, check_requests, list_thoughts
from tests.harness.conversation import APPROVE, REJECT, until
from tests.harness.server import Thread, running
from tests.provider.server import serving

pytestmark = pytest.mark.slow
MODES = "\n".join(
    ["customModes:"]
    + [
        f"""\
  - slug: {prefix}{slug}
    name: {prefix}{slug}
    roleDefinition: You work.
    groups: [{groups}]
    model: {model}
    modelParameters: {parameters}"""
        for prefix, model, parameters in (
            ("claude-", CLAUDE, "{}"),
            ("gpt-", GPT, "{use_responses_api: true}"),
        )
        for slug, groups in (("ask", "read"), ("architect", "read, edit"), ("code", "read, edit"))
    ]
)


async def test_thoughts_outlive_switches_and_the_server(tmp_path: Path) -> None:
    """ask, architect, code, ask, code, with a rejected switch, a mode of the host's, a kill -9."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/custom_modes.yaml").write_text(MODES)
    with serving(answer) as provider:
        with running(tmp_path, **provider.settings) as server:
            (server.workspace / "a.txt").write_text("a")
            async with server.client as client:
                threads = await asyncio.gather(*(begin(client, one) for one in ("claude", "gpt")))
            # Or the server might find a run in its list that it has yet to do.
            runs = tmp_path / ".langgraph_api/.langgraph_ops.pckl"
            runs.unlink(missing_ok=True)
            await until(runs.exists)
            server.kill()
            server.start(**provider.settings)
            async with server.client as client:
                await asyncio.gather(*(go_on(client, one) for one in threads))
        for prefix in ("claude", "gpt"):
            requests = [one for one in provider.requests if f"{prefix}: " in str(one.body)]
            check_requests(provider, requests)
            assert len(list_thoughts(requests[-1])) == len(requests) - 1
            assert not any(one.body.get("stream") for one in requests), "in an editor they are"


async def begin(client: LangGraphClient, prefix: str) -> Thread:
    """Up to a question, which waits while the server is killed."""
    thread = await Thread.new(client)
    await thread.say(f"{prefix}: read_file a.txt, mode {prefix}-architect", mode=f"{prefix}-ask")
    await thread.decide(APPROVE)
    await thread.say(f"Do it: mode {prefix}-code, write_file {prefix}.md, mode {prefix}-ask")
    while waiting := await thread.waiting():
        await thread.decide(APPROVE)
    await thread.say(f"And now: mode {prefix}-code, read_file a.txt")
    await thread.decide(REJECT)
    assert (await thread.mode(), waiting) == (f"{prefix}-ask", [])
    await thread.say(f"More: write_file more-{prefix}.md", mode=f"{prefix}-code")
    return thread


async def go_on(client: LangGraphClient, before: Thread) -> None:
    thread = await reopened(client, before)
    assert [one["name"] for one in await thread.waiting()] == ["write_file"]
    await thread.decide(APPROVE)
    await thread.say("End:")
    values: Any = await thread.values()
    assert [one["type"] for one in values["messages"] if "You work." in str(one)] == []
    assert {one["type"] for one in values["messages"]} == {"human", "ai", "tool"}
    assert values["notices"] == []
    sent = [*values["messages"], {"role": "user", "content": "Again:"}]
    await thread.run(input={"messages": sent})
    assert len((await thread.values())["messages"]) == len(sent) + 1
