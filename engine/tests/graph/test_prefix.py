"""What a model was sent once it is sent again: each request begins with the whole one before it."""

import asyncio
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from modeshift.modes.policy import Approvals
from tests.graph.conftest import Serve
from tests.graph.models.model_thread import use
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, make_agent
from tests.harness.recording import MODELS
from tests.harness.scripted import Call
from tests.provider import script as provider_script
from tests.provider.digests import unmarked
from tests.provider.script import Answer, say
from tests.provider.server import serving

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example is some lines long, and making it shorter takes minutes."""
MODES = ("ask", "architect", "code", "debug")
Body = dict[str, Any]


class Script:
    """A provider's model that makes the calls of the steps that are left, and thinks."""

    left: list[list[Call]]

    def __call__(self, history: Sequence[BaseMessage]) -> Answer:
        calls = self.left.pop(0) if self.left else []
        made = tuple(provider_script.Call(*call) for call in calls)
        return Answer("" if made else f"Said {len(history)}.", made, thinking=f"Hm {len(history)}.")


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


CALL: st.SearchStrategy[Call] = st.sampled_from(
    [
        *(("switch_mode", {"mode_slug": mode, "reason": "It is time."}) for mode in MODES),
        ("read_file", {"path": "a.txt"}),
        ("list_files", {}),
        ("write_file", {"path": "a.md", "content": "x"}),
        ("execute_command", {"command": "true"}),
        ("update_todo_list", {"todos": [{"content": "do it"}]}),
        ("ask_followup_question", {"question": "Which?"}),
        ("attempt_completion", {"result": "Done."}),
        ("no_such_tool", {}),
    ]
)
STEPS = st.lists(st.lists(CALL, min_size=1, max_size=3), max_size=6)
TURNS = st.lists(
    st.tuples(
        st.sampled_from([None, *MODES]),
        STEPS,
        st.lists(st.sampled_from(["approve", "reject", "edit", "say"]), max_size=8),
    ),
    min_size=1,
    max_size=4,
)


async def run(name: str, script: Script, turns: Any, workspace: Path) -> None:
    talk = Conversation(make_agent(workspace, name, Approvals.AUTO))
    for number, (mode, steps, decisions) in enumerate(turns):
        script.left = list(steps)
        await talk.say(f"Turn {number}.", **({"mode": mode} if mode else {}))
        left = list(decisions)
        while waiting := await talk.waiting():
            kind = left.pop(0) if left else "reject"
            if kind == "say":
                await talk.say("Rather go on.")
                continue
            is_switch = waiting[0]["name"] == "switch_mode"
            if kind == "edit" and is_switch and len(waiting) == 1:
                other = edit("switch_mode", mode_slug="debug", reason="no, this")
                await talk.decide(other if await talk.mode() != "debug" else APPROVE)
                continue
            answers = [
                {"type": "respond", "message": "That."}
                if request["name"] == "ask_followup_question"
                else (APPROVE if kind == "approve" else REJECT)
                for request in waiting
            ]
            await talk.decide(*answers)


@pytest.mark.slow
@pytest.mark.parametrize("name", [MODELS["anthropic"], MODELS["openai"]])
@settings(max_examples=10, phases=UNSHRUNK)
@given(turns=TURNS)
def test_each_request_begins_with_the_one_before(name: str, turns: Any) -> None:
    script = Script()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(script) as provider,
        pytest.MonkeyPatch.context() as patch,
    ):
        use(provider, patch, "openai")
        (Path(folder) / "a.txt").write_text("text")
        asyncio.run(run(name, script, turns, Path(folder)))
    assert provider.refused == provider.dropped == []
    assert len(provider.requests) >= len(turns)
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
