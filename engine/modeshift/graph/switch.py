"""A switch that a person approved, applied."""

from langchain_core.messages import ToolMessage

from modeshift.graph.approvals.requests import describe_switch
from modeshift.graph.briefing.handover import describe_handover
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.messages.repair import VOID, build_not_run_result
from modeshift.graph.records.switches import Switch, list_switches
from modeshift.graph.routing import change_mode
from modeshift.graph.state import State, Update
from modeshift.graph.subtasks.begin import is_as_approved
from modeshift.modes.chart import Configuration
from modeshift.modes.errors import InvalidInputError


def find_approved_switch(deps: AgentDeps, state: State) -> Switch | None:
    """The switch that is due; None if the mode or the limit has changed since it was approved."""
    switch = state.get("switch")
    if switch is None:
        raise InvalidInputError("phase 'switching' without an approved switch in the state")
    return switch if is_as_approved(deps, state, switch) else None


def apply_switch(deps: AgentDeps, state: State, switch: Switch, before: Configuration) -> Update:
    """The next step has the new mode's tools and prompt."""
    update = change_mode(state, before.mode, switch["mode_slug"], switch["reason"], "human")
    update["switch"] = None
    update["messages"] = [_build_result(deps, state, switch, before)]
    if switch["approvals"] is not None:
        update["approvals"] = switch["approvals"]
    return update


def drop_switch(state: State) -> Update:
    """Go on without it."""
    results = [
        build_not_run_result(one["call"], VOID) for one in list_switches(state.get("switch"))
    ]
    return Update(messages=results, switch=None)


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
