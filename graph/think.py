"""The mode nodes: one model call, with the mode's prompt and exactly its tools."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from graph.approvals.contents import contents
from graph.approvals.identity import fingerprint
from graph.approvals.judging import Moment, batches, judge_all
from graph.deps import Harness
from graph.mode_changes import where
from graph.models.retry import answered
from graph.routing import Node
from graph.state import State
from modes.machine import Event


def mode_node(harness: Harness, slug: str) -> Node:
    """The node of the mode ``slug``."""

    async def think(state: State, config: RunnableConfig) -> dict[str, Any]:
        voice = harness.voice(slug)
        now, change = where(harness, state)
        messages = state["messages"]
        message = await answered(voice, messages, config)
        update: dict[str, Any] = {"messages": [message]}
        if change:
            update |= {"mode_changes": change, "written": []}
        if not message.tool_calls:
            return update | {"phase": harness.machine.send(now, Event.ANSWER).phase.value}
        moment = Moment.of(harness, state, len(message.tool_calls) == 1, state["refused"])
        judged = await judge_all(harness, moment, message.tool_calls)
        if any(one.verdict.kind == "ask" for one in judged):
            phase = harness.machine.send(now, Event.REVIEW).phase
            return update | {
                "phase": phase.value,
                "asked_under": fingerprint(harness, moment, judged),
                "asked_of": await contents(harness, judged),
            }
        phase = harness.machine.send(now, Event.ACT).phase
        return update | {
            "phase": phase.value,
            "plan": batches(harness, str(message.id), judged, {}),
        }

    return think
