"""``switch_mode``: applies a switch that a person approved, or begins the sub-task."""

from typing import Any

from langchain_core.messages import ToolMessage

from modeshift.graph.approvals.requests import describe_switch
from modeshift.graph.briefing.handover import describe_handover
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import VOID, build_not_run_result
from modeshift.graph.records.switches import Switch, list_switches
from modeshift.graph.routing import Node, change_mode, reconcile_mode
from modeshift.graph.state import State
from modeshift.graph.subtasks.begin import begin_subtask, is_as_approved
from modeshift.modes.chart import Configuration, Event
from modeshift.modes.errors import InvalidInputError


def switch_node(deps: AgentDeps) -> Node:
    """Applies the switch: the next step has the new mode's tools and prompt."""

    async def switch_mode(state: State) -> dict[str, Any]:
        switch = state.get("switch")
        if switch is None:
            raise InvalidInputError("phase 'switching' without an approved switch in the state")
        before, changed = reconcile_mode(deps, state)
        if changed or not is_as_approved(deps, state, switch):
            return _drop_switch(deps, switch, before) | changed
        now = deps.machine.send(before, Event.SWITCH_MODE, switch["mode_slug"])
        if task := switch.get("task"):
            return begin_subtask(state, switch, task, before, now)
        update = {
            **change_mode(state, before.mode, now.mode, switch["reason"], "human"),
            "phase": now.phase.value,
            "switch": None,
            "messages": [_build_result(deps, state, switch, before)],
        }
        if switch["approvals"] is not None:
            update["approvals"] = switch["approvals"]
        return update

    return switch_mode


def _drop_switch(deps: AgentDeps, switch: Switch, before: Configuration) -> dict[str, Any]:
    """Go on without it: the mode or the limit has changed since a person approved."""
    now = deps.machine.send(deps.machine.send(before, Event.RESET), Event.START)
    results = [build_not_run_result(one["call"], VOID) for one in list_switches(switch)]
    return {"mode": now.mode, "phase": now.phase.value, "messages": results, "switch": None}


def _build_result(
    deps: AgentDeps, state: State, switch: Switch, before: Configuration
) -> ToolMessage:
    modes = [deps.catalog[slug] for slug in (before.mode, switch["mode_slug"])]
    source, target = (mode.name for mode in modes)
    return ToolMessage(
        f"{switch['reply']}\nSwitched from {source} to {target} mode; your role is now "
        f"that of {target} mode. {describe_switch(deps, *modes)}"
        + describe_handover(source, state.get("written", []), state.get("todos", [])),
        tool_call_id=get_call_id(switch["call"]),
        name=switch["call"]["name"],
    )
