"""What a model was sent once it is sent again: each request begins with the whole one before it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from modeshift.modes.policy import Approvals
from tests.graph.calls import DONE, QUESTION, read, respond, run, to, todo, write
from tests.graph.conftest import Serve
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, make_agent
from tests.harness.recording import MODELS
from tests.harness.scripted import Call
from tests.provider import script as provider_script
from tests.provider.digests import unmarked
from tests.provider.script import Answer, say

Body = dict[str, Any]


def get_begin(body: Body) -> Any:
    """What comes before the messages."""
    return body.get("system"), body["tools"]


def get_messages(body: Body) -> list[Any]:
    """One for each block, as providers compare them: marks of the cache apart."""
    if "input" in body:
        return list(body["input"])
    return [
        (message["role"], unmarked(block))
        for message in body["messages"]
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
    ]


def check_prefixes(bodies: list[Body]) -> None:
    for before, after in pairwise(bodies):
        assert get_begin(before) == get_begin(after)
        earlier, later = get_messages(before), get_messages(after)
        assert later[: len(earlier)] == earlier


def think(*calls: Call) -> Answer:
    made = tuple(provider_script.Call(*each) for each in calls)
    return Answer("" if calls else "So.", made, thinking="Hm.")


END = think()
CHOSEN: Any = edit("switch_mode", mode_slug="debug", reason="no, this")
TURNS: list[tuple[dict[str, Any], list[Answer], list[Any]]] = [
    ({}, [think(todo("do it"), read("a.txt")), think(to("code")), END], [[REJECT]]),
    ({}, [think(to("architect")), think(write("a.md"), run("true")), END], [[APPROVE]]),
    ({}, [think(read("a.txt"), to("code")), END], ["Rather go on."]),
    ({"mode": "ask"}, [think(("no_such_tool", {})), think(to("code")), END], [[CHOSEN]]),
    ({}, [think(run("true"), QUESTION), END], [[APPROVE, respond("That.")]]),
    ({"mode": "code"}, [think(QUESTION), END], ["No answer."]),
    ({}, [think(write("b.md"), run("true")), think(DONE)], [[APPROVE]]),
]
"""What the host sets, what the model does, and what a person decides or says instead."""


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_each_request_begins_with_the_one_before(
    workspace: Path, serve: Serve, name: str
) -> None:
    """Through switches that are approved, rejected, edited, passed over, or made by the host."""
    (workspace / "a.txt").write_text("text")
    with serve([step for _, steps, _ in TURNS for step in steps], name) as provider:
        talk = Conversation(make_agent(workspace, MODELS[name], Approvals.AUTO))
        for number, (host, _, answers) in enumerate(TURNS):
            await talk.say(f"Turn {number}.", **host)
            for answer in answers:
                await (talk.say(answer) if isinstance(answer, str) else talk.decide(*answer))
    targets = [change["target"] for change in (await talk.values())["mode_changes"]]
    assert targets == ["architect", "ask", "debug", "code"]
    check_prefixes([request.body for request in provider.requests])


async def test_an_answer_that_somebody_has_emptied(workspace: Path, serve: Serve) -> None:
    """Anthropic's client leaves it out, and then refuses what the model is told before it."""
    with serve([say("1"), say("2")], "anthropic") as provider:
        talk = Conversation(make_agent(workspace, MODELS["anthropic"]))
        await talk.say("One.")
        answer = (await talk.messages())[-1]
        await talk.agent.aupdate_state(talk.config, {"messages": [AIMessage("", id=answer.id)]})
        await talk.say("Two.", mode="code")
    *_, question, told = provider.requests[-1].body["messages"]
    assert (question["role"], told["role"]) == ("user", "system")
    assert all(f"You are in {name} mode" in str(told) for name in ("Ask", "Code"))
