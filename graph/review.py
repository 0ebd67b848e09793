"""``review``: one interrupt for all calls of a message that need a person."""

from typing import Any, assert_never

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from graph.approvals.decisions import Decision, ask_person
from graph.approvals.judging import CallContext, Judged, digest_question, judge_all
from graph.approvals.outcome import Outcome
from graph.approvals.requests import build_request
from graph.deps import AgentDeps
from graph.messages.repair import VOID, find_last_answer, find_open_calls, repair
from graph.routing import Node, reconcile_mode
from graph.state import State
from modes.machine import Configuration, Event


def review_node(deps: AgentDeps) -> Node:
    """LangGraph runs the node again from its start on resume, so it has no side effects."""

    async def review(state: State, config: RunnableConfig) -> dict[str, Any]:
        now, changed = reconcile_mode(deps, state)
        message, calls = find_last_answer(state["messages"]), find_open_calls(state["messages"])
        asked = state.get("asked")
        if changed or not calls or message is None or asked is None:
            return _void(deps, state, now, changed)
        context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
        judged = await judge_all(deps, context, calls)
        if asked["digest"] != digest_question(judged):
            return _void(deps, state, now, changed)

        thread = str(config["configurable"].get("thread_id", ""))
        outcome = Outcome(deps, context, asked, thread, str(message.id))
        asking = [one for one in judged if one.verdict.kind == "ask"]
        if asking:
            request = build_request(deps, context, asking, f"{message.id}{asked['digest']}")
            decisions = ask_person(deps, asking, request)
            for one, decision in zip(asking, decisions, strict=True):
                await _apply_decision(outcome, one, decision)
        return outcome.update(now, judged)

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
