"""``switch_mode``: applies a switch that a person approved."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from graph.decisions import model_change, tools_change
from graph.harness import Harness
from graph.history import call_id
from graph.mode_changes import record
from graph.node import Node, configuration
from graph.state import State
from modes.errors import InvalidInputError
from modes.machine import Event

MAX_NAMED = 30


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
            "written": [],
        }
        if switch["approvals"] is not None:
            update["approvals"] = switch["approvals"]
        names = [harness.catalog[slug].name for slug in (source, now.mode)]
        update["messages"] = [
            ToolMessage(
                f"{switch['reply']}\nSwitched from {names[0]} to {names[1]} mode; your role is now "
                f"that of {names[1]} mode. "
                + tools_change(*harness.machine.difference(source, now.mode))
                + model_change(harness, source, now.mode)
                + handed_over(names[0], state.get("written", []), state.get("todos", [])),
                tool_call_id=call_id(switch["call"]),
                name=switch["call"]["name"],
            )
        ]
        return update

    return switch_mode


def handed_over(name: str, written: Sequence[str], todos: Sequence[Mapping[str, str]]) -> str:
    """What the mode that is left has written, the plan above all, for the next one to read."""
    lines = []
    if written:
        left_out = len(written) - MAX_NAMED
        more = f" and {left_out} more" if left_out > 0 else ""
        lines.append(f"Files written in {name} mode: {', '.join(written[-MAX_NAMED:])}{more}.")
    if todos:
        lines.append("The todo list as it stands:")
        lines += [f"- {todo['content']} ({todo['status']})" for todo in todos[:MAX_NAMED]]
    return "".join(f"\n{line}" for line in lines)
