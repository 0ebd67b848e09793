"""``review``: one interrupt for all calls of a message that need a person."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from modeshift.graph.approvals.decisions import Decision, ask_person
from modeshift.graph.approvals.judging import judge_question
from modeshift.graph.approvals.outcome import Outcome
from modeshift.graph.approvals.requests import build_request
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import VOID, repair
from modeshift.graph.routing import Node, get_thread, read_host_changes, reconcile_mode
from modeshift.graph.state import State
from modeshift.modes.chart import Configuration, Event


def review_node(deps: AgentDeps) -> Node:
    """LangGraph runs the node again from its start on resume, so it has no side effects."""

    async def review(state: State, config: RunnableConfig) -> dict[str, Any]:
        host_changes = await read_host_changes(deps, state, config)
        state = cast("State", {**state, **host_changes})
        now, changed = reconcile_mode(deps, state)
        question = None if changed else await judge_question(deps, state)
        if question is None:
            return _void(deps, state, now, host_changes | changed)
        outcome = Outcome(deps, question, get_thread(config))
        asking = [one for one in question.judged if one.verdict.kind == "ask"]
        decisions: list[Decision] = []
        if asking:
            unique = f"{question.message}{question.asked['digest']}"
            request = build_request(deps, question.context, asking, unique)
            decisions = ask_person(deps, asking, request)
        ids = (get_call_id(one.call) for one in asking)
        await outcome.settle(dict(zip(ids, decisions, strict=True)))
        return host_changes | outcome.update(now)

    return review


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
