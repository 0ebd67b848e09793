"""``review``: one interrupt for all calls of a message that need a person."""

from typing import Any, assert_never, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from graph.approvals.decisions import Decision, ask_person
from graph.approvals.judged import Judged
from graph.approvals.outcome import Outcome
from graph.approvals.question import judge_question
from graph.approvals.requests import build_request
from graph.deps import AgentDeps
from graph.messages.repair import VOID, repair
from graph.routing import Node, find_news, get_thread, reconcile_mode
from graph.state import State
from modes.chart import Configuration, Event


def review_node(deps: AgentDeps) -> Node:
    """LangGraph runs the node again from its start on resume, so it has no side effects."""

    async def review(state: State, config: RunnableConfig) -> dict[str, Any]:
        # The question was asked under the old approvals; what was planned is judged again.
        news = await find_news(deps, state, config)
        state = cast("State", {**state, **news, "approvals": state["approvals"]})
        now, changed = reconcile_mode(deps, state)
        question = None if changed else await judge_question(deps, state)
        if question is None:
            return _void(deps, state, now, news | changed)
        message, asked, context, judged = question
        outcome = Outcome(deps, context, asked, get_thread(config), message)
        asking = [one for one in judged if one.verdict.kind == "ask"]
        if asking:
            request = build_request(deps, context, asking, f"{message}{asked['digest']}")
            decisions = ask_person(deps, asking, request)
            for one, decision in zip(asking, decisions, strict=True):
                await _apply_decision(outcome, one, decision)
        return news | outcome.update(now, judged)

    return review


async def _apply_decision(outcome: Outcome, one: Judged, decision: Decision) -> None:
    match decision["type"]:
        case "approve":
            pattern = decision.get("remember", False)
            await outcome.approve(one, decision.get("approvals"), pattern)
        case "edit":
            await outcome.edit(one, decision["edited_action"]["args"])
        case "reject":
            outcome.reject(one, decision.get("message", ""))
        case "respond":
            outcome.respond(one, decision["message"])
        case _:
            assert_never(decision["type"])


def _void(
    deps: AgentDeps, state: State, now: Configuration, changed: dict[str, Any]
) -> dict[str, Any]:
    """Withdraw the question: what it was about (mode, rules or files) has changed since."""
    return {
        "messages": Overwrite(repair(state["messages"], text=VOID)),
        "phase": deps.machine.send(now, Event.DECIDED).phase.value,
        "notices": [*state.get("notices", []), VOID],
        **changed,
    }
