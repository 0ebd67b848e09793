"""A tool's argument that is a key of the clone's own state: the model neither sees nor gives it."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg
from langgraph.checkpoint.memory import InMemorySaver

from graph.agent import build
from modeshift import State
from modeshift.calls.requests import build_title
from modeshift.models.loading import Models
from modeshift.modes.errors import ConfigurationError, InvalidInputError
from modeshift.testing.conversation import Conversation, judge_call
from modeshift.testing.scripted import ScriptedModel, ScriptStep
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.workspace import Workspace
from tests.graph.calls import asks, result_of
from tests.harness.conversation import APPROVE, edit, make_toolbox
from tests.harness.modes import load_catalog

Member = Annotated[str, InjectedToolArg]
PAY = ("pay", {"amount": "1.50"})


class OwnState(State, total=False):
    member: str
    limit_of_today: Decimal


def pay(member: Member, amount: Decimal, due: date | None = None) -> str:
    """Pay a fine."""
    return f"{member} paid {amount}"


def look(member: Member) -> str:
    """Look a member up."""
    return f"{member} is here"


def raise_limit(limit_of_today: Annotated[Decimal, InjectedToolArg], by: int) -> str:
    """Raise the limit."""
    return f"{limit_of_today!r} and {by}"


def talk_with(workspace: Path, *steps: ScriptStep, state: type = OwnState) -> Conversation:
    place, catalog, model = Workspace(workspace), load_catalog(), ScriptedModel.of(*steps)
    tools = [
        Tool.of(pay, "outside", subject=("member", "amount", "due")),
        Tool.of(look, "outside-read"),
        Tool.of(raise_limit, "outside"),
    ]
    toolbox = make_toolbox(place, catalog).with_tools(tools)
    deps = AgentDeps(catalog, toolbox, Models(model), state=state)
    talk = Conversation(build(deps, InMemorySaver()))
    talk.model = model
    return talk


async def test_the_tool_gets_what_the_state_has(workspace: Path) -> None:
    talk = talk_with(workspace, [("look", {})], [PAY], "done")
    assert list(talk.agent.live.deps.toolbox["pay"].declared["parameters"]["properties"]) == [
        "amount",
        "due",
    ]
    await talk.say("go", mode="code", member="M-1")
    (request,) = await talk.waiting()
    assert request["args"] == {"member": "M-1", "amount": "1.50", "due": None}
    assert "wants to use pay: " in request["description"]
    await talk.decide(APPROVE)
    assert "M-1 is here" in next(iter((await talk.results()).values())).text
    assert "M-1 paid 1.50" in await result_of(talk)


@pytest.mark.parametrize("member", ["M-2", ""])
async def test_the_model_gives_no_other(workspace: Path, member: str) -> None:
    forged = [("look", {"member": member}), ("pay", {**PAY[1], "member": member})]
    talk = talk_with(workspace, forged, "done")
    await talk.say("go", mode="code", member="M-1")
    assert await asks(talk) == []
    for result in (await talk.results()).values():
        assert (result.status, "'member' is not for you to give" in result.text) == ("error", True)


async def test_without_the_key_nobody_is_asked(workspace: Path) -> None:
    talk = talk_with(workspace, [PAY], "done")
    await talk.say("go", mode="code")
    assert await asks(talk) == []
    assert "this thread has no 'member' yet" in await result_of(talk)
    without = await judge_call(talk.agent, "code", *PAY)
    judged = await judge_call(talk.agent, "code", *PAY, member="M-1")
    assert (without.kind, judged.kind) == ("deny", "ask")


async def test_a_person_changes_the_amount_and_not_the_member(workspace: Path) -> None:
    talk = talk_with(workspace, [PAY], "done")
    await talk.say("go", mode="code", member="M-1")
    with pytest.raises(InvalidInputError, match="'member' is not for you to give"):
        await talk.decide(edit("pay", amount=1, member="M-2"))
    (request,) = await talk.waiting()
    await talk.decide(edit("pay", **{**request["args"], "amount": "1"}))
    assert "M-1 paid 1" in await result_of(talk)


@pytest.mark.parametrize("by", ["input", "update_state"])
async def test_a_question_is_for_the_key_as_it_was_shown(workspace: Path, by: str) -> None:
    talk = talk_with(workspace, [PAY], "done")
    await talk.say("go", mode="code", member="M-1")
    if by == "input":
        await talk.send({"member": "M-2"})
    else:
        await talk.agent.aupdate_state(talk.config, {"member": "M-2"})
        await talk.send({})
    assert "have changed since the user was asked" in await result_of(talk)
    assert await asks(talk) == []


@pytest.mark.parametrize("value", ["7.50", Decimal("7.50")])
async def test_a_key_may_be_of_any_type(workspace: Path, value: str | Decimal) -> None:
    talk = talk_with(workspace, [("raise_limit", {"by": 1})], "done")
    await talk.say("go", mode="code", limit_of_today=value)
    (request,) = await talk.waiting()
    assert request["args"] == {"by": 1, "limit_of_today": "7.50"}
    await talk.decide(edit("raise_limit", **{**request["args"], "by": 2}))
    assert "Decimal('7.50') and 2" in await result_of(talk)


def test_it_has_to_be_a_key_of_the_state(workspace: Path) -> None:
    with pytest.raises(ConfigurationError, match="pay has the injected argument 'member'"):
        talk_with(workspace, state=State)


def test_a_title_has_money_and_dates_as_a_call_writes_them(workspace: Path) -> None:
    """An editor was shown none of the calls of such a tool: its title was an error."""
    deps = talk_with(workspace).agent.live.deps
    args: dict[str, Any] = {"member": "M-1", "amount": "1.50", "due": "2026-12-24"}
    checked = deps.toolbox.check(deps.toolbox["pay"], args)
    assert build_title(deps, "pay", args) == build_title(deps, "pay", checked)
    assert build_title(deps, "pay", checked) == "Pay M-1 1.50 2026-12-24"
