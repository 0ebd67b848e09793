"""``switch_mode``: applies a switch that a person approved."""

from typing import Any

from langchain_core.messages import ToolMessage

from graph.approvals.descriptions import describe_handover, describe_switch
from graph.deps import AgentDeps
from graph.messages.repair import VOID, call_id, not_run
from graph.mode_changes import reconcile_mode, record_change
from graph.routing import Node
from graph.state import State, Switch
from modes.errors import InvalidInputError
from modes.machine import Configuration, Event


def switch_node(deps: AgentDeps) -> Node:
    """The new mode's tools and prompt are the model's from the next step on."""

    async def switch_mode(state: State) -> dict[str, Any]:
        switch = state.get("switch")
        if switch is None:
            raise InvalidInputError("phase 'switching' without an approved switch in the state")
        before, change = reconcile_mode(deps, state)
        target = switch["mode_slug"]
        is_stale = target not in deps.catalog or deps.catalog[target].digest != switch["digest"]
        if change or is_stale:
            update = _void(deps, before, switch)
            return update | {"mode_changes": change}
        source = before.mode
        now = deps.machine.send(before, Event.SWITCH_MODE, target)
        update = {
            "mode": now.mode,
            "phase": now.phase.value,
            "mode_changes": [record_change(source, now.mode, switch["reason"], "human")],
            "switch": None,
            "written": [],
        }
        if switch["approvals"] is not None:
            update["approvals"] = switch["approvals"]
        modes = [deps.catalog[slug] for slug in (source, now.mode)]
        names = [mode.name for mode in modes]
        update["messages"] = [
            ToolMessage(
                f"{switch['reply']}\nSwitched from {names[0]} to {names[1]} mode; your role is now "
                f"that of {names[1]} mode. {describe_switch(deps, *modes)}"
                + describe_handover(names[0], state.get("written", []), state.get("todos", [])),
                tool_call_id=call_id(switch["call"]),
                name=switch["call"]["name"],
            )
        ]
        return update

    return switch_mode


def void_switch(switch: Switch) -> Switch:
    """A switch of which the node says that it does not hold any more: its mode is none."""
    return {**switch, "digest": ""}


def _void(deps: AgentDeps, now: Configuration, switch: Switch) -> dict[str, Any]:
    """Go on without the switch: its files have changed since a person approved it."""
    idle = deps.machine.send(now, Event.RESET)
    return {
        "mode": now.mode,
        "phase": deps.machine.send(idle, Event.START).phase.value,
        "messages": [not_run(switch["call"], VOID)],
        "switch": None,
    }
