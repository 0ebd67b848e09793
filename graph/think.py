"""The mode nodes: one model call, with the mode's prompt and exactly its tools."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from graph.approvals.contents import digest_contents
from graph.approvals.identity import digest_question
from graph.approvals.judging import CallContext, judge_all, plan_batches
from graph.deps import AgentDeps
from graph.mode_changes import reconcile_mode
from graph.models.retry import call_model
from graph.routing import Node
from graph.state import State
from modes.machine import Event


def mode_node(deps: AgentDeps, slug: str) -> Node:
    """The node of the mode ``slug``."""

    async def think(state: State, config: RunnableConfig) -> dict[str, Any]:
        bound = deps.bound_model(slug)
        now, change = reconcile_mode(deps, state)
        messages = state["messages"]
        message = await call_model(bound, messages, config)
        update: dict[str, Any] = {"messages": [message]}
        if change:
            update |= {"mode_changes": change, "written": []}
        if not message.tool_calls:
            return update | {"phase": deps.machine.send(now, Event.ANSWER).phase.value}
        context = CallContext.of(deps, state, len(message.tool_calls) == 1, state["refused"])
        judged = await judge_all(deps, context, message.tool_calls)
        if any(one.verdict.kind == "ask" for one in judged):
            phase = deps.machine.send(now, Event.REVIEW).phase
            return update | {
                "phase": phase.value,
                "asked_under": digest_question(deps, context, judged),
                "asked_of": await digest_contents(deps, judged),
            }
        phase = deps.machine.send(now, Event.ACT).phase
        return update | {
            "phase": phase.value,
            "plan": plan_batches(deps, str(message.id), judged, {}),
        }

    return think
