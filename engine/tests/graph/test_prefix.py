"""What a model was sent once it is sent again: each request begins with the whole one before it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from tests.graph.conftest import Serve
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import MODELS
from tests.provider.digests import unmarked
from tests.provider.script import say

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
