"""What a model was sent once it is sent again: each request begins with the whole one before it."""

import asyncio
import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field
from typing_extensions import override

from modes.policy import Approvals
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, make_agent
from tests.harness.scripted import Call, calling

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example is some lines long, and making it shorter takes minutes."""
MODES = ("ask", "architect", "code", "debug")
Body = dict[str, Any]


class _Recorder(BaseChatModel):
    """A real client but for the network: keeps the bodies, and answers by a script."""

    bodies: list[Body] = Field(default_factory=list)
    script: list[list[Call]] = Field(default_factory=list)

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.bodies.append(self._get_request_payload(messages, **kwargs))  # type: ignore[attr-defined]
        number = len(self.bodies)
        calls = self.script.pop(0) if self.script else []
        answer = calling(*calls, prefix=f"toolu_{number}") if calls else AIMessage(f"Said {number}")
        self.finish(answer, number)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def finish(self, answer: AIMessage, number: int) -> None:
        """Make it look as if the service had sent it, with thinking."""
        raise NotImplementedError


class Anthropic(_Recorder, ChatAnthropic):
    @override
    def finish(self, answer: AIMessage, number: int) -> None:
        text = [{"type": "text", "text": answer.text}] if answer.text else []
        thought = {"type": "thinking", "thinking": f"Hm {number}.", "signature": f"s{number}"}
        answer.content = [thought, *text]
        answer.response_metadata = {"model_provider": "anthropic", "stop_reason": "end_turn"}


class OpenAI(_Recorder, ChatOpenAI):
    @override
    def finish(self, answer: AIMessage, number: int) -> None:
        thought = {"type": "reasoning", "summary": [], "encrypted_content": f"e{number}"}
        text = [{"type": "text", "text": answer.text, "phase": "final"}] if answer.text else []
        calls = [
            {
                "type": "function_call",
                "name": call["name"],
                "call_id": call["id"],
                "arguments": json.dumps(call["args"]),
            }
            for call in answer.tool_calls
        ]
        answer.content = [thought, *text, *calls]
        answer.response_metadata = {
            "model_provider": "openai",
            "object": "response",
            "status": "completed",
        }


def anthropic() -> Anthropic:
    return Anthropic(model="claude-sonnet-5-5", api_key="none")


def openai() -> OpenAI:
    return OpenAI(
        model="gpt-5.6",
        api_key="none",
        use_responses_api=True,
        store=False,
        include=["reasoning.encrypted_content"],
    )


def get_begin(body: Body) -> Any:
    """What comes before the messages."""
    return body.get("system"), body["tools"]


def get_messages(body: Body) -> list[Any]:
    """One for each block, as providers compare them."""
    if "input" in body:
        return list(body["input"])
    return [
        (message["role"], block)
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


async def run(model: _Recorder, turns: Any, workspace: Path) -> None:
    talk = Conversation(make_agent(workspace, model, Approvals.AUTO))
    for number, (mode, steps, decisions) in enumerate(turns):
        model.script = list(steps)
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
@pytest.mark.parametrize("build", [anthropic, openai])
@settings(max_examples=10, deadline=None, phases=UNSHRUNK)
@given(turns=TURNS)
def test_each_request_begins_with_the_one_before(build: Any, turns: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.txt").write_text("text")
        model = build()
        asyncio.run(run(model, turns, Path(folder)))
    assert len(model.bodies) >= len(turns)
    check_prefixes(model.bodies)


async def test_an_answer_that_somebody_has_emptied(workspace: Path) -> None:
    """Anthropic's client leaves it out, and then refuses what the model is told before it."""
    model = anthropic()
    talk = Conversation(make_agent(workspace, model))
    await talk.say("One.")
    answer = (await talk.messages())[-1]
    await talk.agent.aupdate_state(talk.config, {"messages": [AIMessage("", id=answer.id)]})
    await talk.say("Two.", mode="code")
    *_, question, told = model.bodies[-1]["messages"]
    assert (question["role"], told["role"]) == ("user", "system")
    assert all(f"You are in {name} mode" in str(told) for name in ("Ask", "Code"))
