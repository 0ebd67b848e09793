"""The mode nodes: one model call, with the mode's prompt and exactly its tools."""

from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from graph.harness import Harness
from graph.judge import Moment, batches, judge_all
from graph.node import Node, configuration
from graph.place import host_change, recorded_mode
from graph.state import State
from modes.machine import Configuration, Event


def mode_node(harness: Harness, slug: str) -> Node:
    """The node of the mode ``slug``."""
    voice = harness.voices[slug]

    async def think(state: State, config: RunnableConfig) -> dict[str, Any]:
        phase = configuration(state).phase
        now = Configuration(recorded_mode(harness, state), phase)
        now, change = host_change(harness, state, now)
        answer = await voice.model.ainvoke([voice.prompt, *state["messages"]], config)
        message = with_ids(answer)
        update: dict[str, Any] = {"messages": [message]}
        if change:
            update["mode_changes"] = change
        if not message.tool_calls:
            return update | {"phase": harness.machine.send(now, Event.ANSWER).phase.value}
        moment = Moment.of(harness, state, alone=len(message.tool_calls) == 1)
        judged = await judge_all(harness, moment, message.tool_calls)
        if any(one.verdict.kind == "ask" for one in judged):
            return update | {"phase": harness.machine.send(now, Event.REVIEW).phase.value}
        phase = harness.machine.send(now, Event.ACT).phase
        return update | {"phase": phase.value, "plan": batches(judged, {})}

    return think


def with_ids(message: AIMessage) -> AIMessage:
    """``message`` with an id of its own for each call: an answer finds its call by it."""
    seen = set[str]()
    calls = []
    for call in message.tool_calls:
        id = call["id"]
        if not id or id in seen:
            id = f"call_{uuid4().hex}"
        seen.add(id)
        calls.append({**call, "id": id})
    if calls == message.tool_calls:
        return message
    return message.model_copy(update={"tool_calls": calls})
