"""The scenarios in this process and over HTTP: both take decisions as data."""

from pathlib import Path
from typing import Any

from langgraph_sdk.client import LangGraphClient

from tests.clients.scenarios import Scenario, of
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, make_agent
from tests.harness.server import Server, Thread


def decide(words: str, request: dict[str, Any]) -> dict[str, Any]:
    what, _, more = words.partition(" ")
    name, args = request["name"], request["args"]
    return {
        "approve": APPROVE,
        "reject": REJECT,
        "auto": {**APPROVE, "approvals": "auto"},
        "to": edit(name, **{**args, "mode_slug": more}),
        "content": edit(name, **{**args, "content": more}),
        "always": {**APPROVE, "remember": True},
        "pattern": {**APPROVE, "remember": more},
        "answer": {"type": "respond", "message": more},
    }[what]


async def play(talk: Conversation | Thread, scenario: Scenario) -> None:
    host = {"limit": scenario.limit} if scenario.limit else {}
    await talk.say(scenario.says, mode=scenario.begins_in, **host)
    left = [*scenario.decides]
    while left:
        waiting = await talk.waiting()
        await talk.decide(*map(decide, left, waiting))
        left = left[len(waiting) :]
    values = await talk.values()
    assert (values["mode"], values["approvals"]) == (scenario.mode, scenario.approvals)
    assert scenario.tells in str(values["messages"][-1])
    assert [request["name"] for request in await talk.waiting()] == [
        *filter(None, [scenario.waits_for])
    ]


@of("process")
async def test_in_this_process(scenario: Scenario, workspace: Path) -> None:
    await play(Conversation(make_agent(workspace)), scenario)
    scenario.check_files(workspace)


@of("server")
async def test_on_the_server(scenario: Scenario, server: Server, client: LangGraphClient) -> None:
    await play(await Thread.new(client), scenario)
    scenario.check_files(server.workspace)
