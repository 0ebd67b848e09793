"""A fresh start at a switch: the model is sent the user's words and the plan, and what follows."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import SwitchEdge
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.policy import Approvals
from modeshift.testing.plugin import Snapshot
from tests.harness.conversation import APPROVE, Conversation, script
from tests.harness.modes import load_with
from tests.harness.scripted import Call

PLAN = "# The plan\n\n## Files\n\n- `a.py`\n"
EXPLORED = "words of an exploration"


def fresh() -> Catalog:
    edge = SwitchEdge(to="code", plan=True, context="plan")
    return load_with("architect", switches=(edge, SwitchEdge(to="*")))


def switch(slug: str) -> Call:
    return "switch_mode", {"mode_slug": slug, "reason": "r"}


def write(path: str, content: str) -> Call:
    return "write_file", {"path": path, "content": content}


TODO: Call = ("update_todo_list", {"todos": [{"content": "one", "status": "pending"}]})


async def start(
    workspace: Path, *steps: Any, said: dict[str, Any] = APPROVE, **options: Any
) -> Conversation:
    """A thread in code mode, with what it was sent first there as ``asked[2]``."""
    before: list[Any] = [EXPLORED, [write("PLAN.md", PLAN), TODO], [switch("code")]]
    talk = script(workspace, *before, *steps, approvals=Approvals.AUTO, **options)
    await talk.say("Look around.", mode="architect")
    await talk.say("Now plan.")
    await talk.decide(said)
    assert await talk.mode() == "code"
    return talk


def texts(messages: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def kinds(messages: list[BaseMessage]) -> list[str]:
    return [message.type for message in messages if message.type != "system"]


@pytest.mark.parametrize(
    ("is_edge", "said", "is_fresh"),
    [
        (False, APPROVE, False),
        (True, APPROVE, True),
        (False, {**APPROVE, "context": "plan"}, True),
        (True, {**APPROVE, "context": "all"}, False),
    ],
)
async def test_what_the_new_mode_is_sent(
    workspace: Path, said: dict[str, Any], *, is_edge: bool, is_fresh: bool
) -> None:
    more = {"catalog": fresh()} if is_edge else {}
    talk = await start(workspace, "done", said=said, **more)
    sent = talk.model.asked[3].messages
    assert (EXPLORED not in texts(sent)) == is_fresh
    assert "Look around." in texts(sent)
    assert "Now plan." in texts(sent)
    assert "- one (pending)" in texts(sent)
    assert "Files written in Architect mode: PLAN.md." in texts(sent)
    assert ("The plan:\n\n" + PLAN in texts(sent)) == is_fresh
    if is_fresh:
        assert kinds(sent) == ["human", "human", "ai", "tool"]
    assert EXPLORED in texts(await talk.messages()), "the thread has all of it"


async def test_the_card_says_what_each_choice_sends(workspace: Path, snapshot: Snapshot) -> None:
    talk = script(
        workspace,
        "y" * 4000,
        [write("PLAN.md", PLAN)],
        [switch("code")],
        catalog=fresh(),
        approvals=Approvals.AUTO,
    )
    await talk.say("Look around.", mode="architect")
    await talk.say("Now plan.")
    (request,) = await talk.waiting()
    assert request["plan"]["context"] == "plan"
    snapshot("fresh-card.txt", request["description"] + "\n")


async def test_the_way_back_has_the_old_conversation(workspace: Path) -> None:
    steps = [[write("a.py", "x")], "done", [switch("ask")], "answer"]
    talk = await start(workspace, *steps, catalog=fresh())
    await talk.say("And now?")
    sent = talk.model.asked[5].messages
    assert EXPLORED not in texts(sent)
    assert kinds(sent) == ["human", "human", "ai", "tool", "ai", "tool", "ai", "human"]
    await talk.decide(APPROVE)
    sent = talk.model.asked[6].messages
    assert EXPLORED in texts(sent)
    assert kinds(sent)[:3] == ["human", "ai", "human"]
    assert len(await talk.messages()) == len(kinds(sent)) + 1


async def test_the_host_leads_back_too(workspace: Path) -> None:
    talk = await start(workspace, "done", "answer", catalog=fresh())
    await talk.say("And now?", mode="ask")
    assert EXPLORED in texts(talk.model.asked[4].messages)


async def test_a_summary_of_a_fresh_start_leaves_the_old_conversation(workspace: Path) -> None:
    talk = await start(workspace, "done", "the summary", "more", [switch("ask")], catalog=fresh())
    await talk.send({"compact": True})
    assert EXPLORED not in texts(talk.model.asked[4].messages)
    await talk.say("go on")
    sent = texts(talk.model.asked[5].messages)
    assert "the summary" in sent
    assert f"The plan that the user approved, PLAN.md:\n\n{PLAN}".strip() in sent
    assert EXPLORED not in sent
    assert isinstance(
        [m for m in talk.model.asked[5].messages if m.type != "system"][-1], HumanMessage
    )
    await talk.say("back")
    await talk.decide(APPROVE)
    sent = texts(talk.model.asked[7].messages)
    assert EXPLORED in sent
    assert "the summary" in sent


async def test_a_sub_task_in_between(workspace: Path) -> None:
    task: Call = ("new_task", {"mode_slug": "ask", "message": "Look."})
    talk = await start(workspace, [task], "found", "done", catalog=fresh())
    await talk.decide(APPROVE)
    assert kinds(talk.model.asked[4].messages) == ["human"]
    sent = talk.model.asked[5].messages
    assert EXPLORED not in texts(sent)
    assert kinds(sent) == ["human", "human", "ai", "tool", "ai", "tool"]


async def test_thinking_of_the_other_history_stays_away(workspace: Path) -> None:
    """What was thought behind one history is in no request with the other."""

    def think(answer: Any, number: int) -> AIMessage:
        block = {"type": "thinking", "thinking": f"thought {number}", "signature": "s"}
        words, calls = {"type": "text", "text": "w"}, answer.tool_calls
        return AIMessage([block, words], tool_calls=calls)

    before: list[Any] = [
        [write("PLAN.md", PLAN)],
        [switch("code")],
        [write("a.py", "x")],
        "It is made.",
        [switch("ask")],
        "end",
    ]
    talk = script(workspace, *before, approvals=Approvals.AUTO, catalog=fresh())
    talk.model.answers = [think(answer, n) for n, answer in enumerate(talk.model.answers)]

    async def kept() -> list[int]:
        history = str(await talk.messages())
        return [number for number in range(6) if f"thought {number}" in history]

    await talk.say("Plan.", mode="architect")
    assert await kept() == [0, 1]
    await talk.decide(APPROVE)
    assert await kept() == [0, 2, 3], "what was thought with the switch stands behind other words"
    await talk.say("And now?")
    assert await kept() == [0, 2, 3, 4], "the next turn has it all, too"
    await talk.decide(APPROVE)
    assert await kept() == [0, 5]


@pytest.mark.parametrize("call", [write("b.py", "x"), switch("debug")])
async def test_a_context_without_a_plan_is_refused(workspace: Path, call: Call) -> None:
    talk = script(workspace, [call])
    await talk.say("go", mode="code")
    with pytest.raises(InvalidInputError, match="goes with a plan"):
        await talk.decide({**APPROVE, "context": "plan"})
