"""The mode nodes: one model call, with the mode's prompt and exactly its tools."""

from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from graph.fingerprint import fingerprint
from graph.harness import Harness
from graph.history import normalised
from graph.judge import Moment, batches, judge_all
from graph.mode_changes import where
from graph.node import Node
from graph.state import State
from modes.errors import ProviderError, told
from modes.machine import Event


def mode_node(harness: Harness, slug: str) -> Node:
    """The node of the mode ``slug``."""

    async def think(state: State, config: RunnableConfig) -> dict[str, Any]:
        voice = harness.voice(slug)
        now, change = where(harness, state)
        try:
            answer = await voice.model.ainvoke([voice.prompt, *state["messages"]], config)
        except Exception as error:  # each provider's client has its own
            raise ProviderError(f"the model did not answer: {told(error)}") from error
        message = normalised(answer)
        if any(message.id == earlier.id for earlier in state["messages"]):
            # The reducer would put it in the earlier message's place.
            message = message.model_copy(update={"id": str(uuid4())})
        update: dict[str, Any] = {"messages": [message]}
        if change:
            update["mode_changes"] = change
        if not message.tool_calls:
            return update | {"phase": harness.machine.send(now, Event.ANSWER).phase.value}
        moment = Moment.of(harness, state, len(message.tool_calls) == 1, state["refused"])
        judged = await judge_all(harness, moment, message.tool_calls)
        if any(one.verdict.kind == "ask" for one in judged):
            phase = harness.machine.send(now, Event.REVIEW).phase
            return update | {
                "phase": phase.value,
                "asked_under": fingerprint(harness, moment, judged),
            }
        phase = harness.machine.send(now, Event.ACT).phase
        return update | {"phase": phase.value, "plan": batches(str(message.id), judged, {})}

    return think
