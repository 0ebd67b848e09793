"""``apply_switch``: enters the mode of a switch that a person approved; or ``drop_switch``."""

from typing import Literal

from langchain_core.messages import ToolMessage
from langgraph.types import Overwrite

from modeshift.calls.plans import describe_plan, find_edge
from modeshift.calls.requests import describe_switch
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import build_not_run_result, find_last_answer
from modeshift.messages.thinking import drop_unbound_thinking, join_history, split_history
from modeshift.models.usage import NO_FILL
from modeshift.modes.facts import APPROVED
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import change_mode
from modeshift.threads.state import State, Switch, Update, list_switches
from modeshift.turns.briefing import describe_handover


def apply_switch(deps: AgentDeps, state: State, switch: Switch, before: Configuration) -> Update:
    """The update that enters the mode; the next step has its tools and prompt."""
    how = switch.get("how")
    decider: Literal["human", "nobody"] = "nobody" if how == "by edge" else "human"
    target, reason = switch["mode_slug"], switch["reason"]
    update = change_mode(state, before.mode, target, reason, decider, how)
    update |= {"switch": None, "switched": state.get("switched", 0) + 1}
    plan, told, fresh_from = switch.get("approved_plan"), "", None
    if plan is not None:
        known = {APPROVED, *update["facts"].get("conversation", ())}
        update["facts"] = {**update["facts"], "conversation": sorted(known)}
        update["approved_plan"] = plan
        told = f"\n{describe_plan(plan)}" if plan["paths"] else ""
        answer = find_last_answer(state["messages"])
        context = switch.get("context") or find_edge(deps, before.mode, target).context
        if answer is not None and context == "plan":
            fresh_from, told = answer.id, f"{told}\nThe plan:\n\n{plan['text']}"
    result = _build_result(deps, state, switch, before, told)
    update["messages"] = [result]
    if fresh_from or state.get("fresh_from"):  # no thinking goes behind what it did not follow
        left_out, sent = split_history(state["messages"], fresh_from)
        kept = join_history(left_out, drop_unbound_thinking(sent)[0])
        update |= Update(messages=Overwrite([*kept, result]), fresh_from=fresh_from, usage=NO_FILL)
    if switch["approvals"] is not None:
        update["approvals"] = switch["approvals"]
    return update


def drop_switch(deps: AgentDeps, state: State, why: str, before: Configuration) -> Update:
    """The update that goes on without the switch; the model is told ``why``."""
    results = [build_not_run_result(due["call"], why) for due in list_switches(state.get("switch"))]
    now = deps.machine.send_all(before, choose(Phase.SWITCHING, Seen()))
    return Update(messages=results, switch=None, mode=now.mode, phase=now.phase)


def _build_result(
    deps: AgentDeps, state: State, switch: Switch, before: Configuration, told: str
) -> ToolMessage:
    modes = [deps.catalog[slug] for slug in (before.mode, switch["mode_slug"])]
    source, target = (mode.name for mode in modes)
    return ToolMessage(
        f"{switch['reply']}\nSwitched from {source} to {target} mode; your role is now "
        f"that of {target} mode. {describe_switch(deps, *modes)}"
        + describe_handover(source, state.get("written", []), state.get("todos", []))
        + told,
        tool_call_id=get_call_id(switch["call"]),
        name=switch["call"]["name"],
    )
