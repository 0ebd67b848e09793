"""``switch_mode``: applies a switch that a person approved."""

from typing import Any

from langchain_core.messages import ToolMessage

from graph.decisions import tools_change
from graph.harness import Harness
from graph.history import call_id
from graph.mode_changes import record
from graph.node import Node, configuration
from graph.state import State
from modes.errors import InvalidInputError
from modes.machine import Event


def switch_node(harness: Harness) -> Node:
    """The new mode's tools and prompt are the model's from the next step on."""

    async def switch_mode(state: State) -> dict[str, Any]:
        switch = state["switch"]
        if switch is None:
            raise InvalidInputError("phase 'switching' without an approved switch in the state")
        source = state["mode"]
        now = harness.machine.send(configuration(state), Event.SWITCH_MODE, switch["mode_slug"])
        update: dict[str, Any] = {
            "mode": now.mode,
            "phase": now.phase.value,
            "mode_changes": [record(source, now.mode, switch["reason"], "human")],
            "switch": None,
        }
        if switch["approvals"] is not None:
            update["approvals"] = switch["approvals"]
        names = [harness.catalog[slug].name for slug in (source, now.mode)]
        update["messages"] = [
            ToolMessage(
                f"{switch['reply']}\nSwitched from {names[0]} to {names[1]} mode; your role is now "
                f"that of {names[1]} mode. "
                + tools_change(*harness.machine.difference(source, now.mode)),
                tool_call_id=call_id(switch["call"]),
                name=switch["call"]["name"],
            )
        ]
        return update

    return switch_mode
