"""``DueSwitch``: a switch that a person approved, when its turn comes; and how it is applied."""

from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import ToolMessage
from langgraph.types import Overwrite

from modeshift.calls.plans import describe_plan, find_edge
from modeshift.calls.requests import describe_switch
from modeshift.calls.ways import Values, find_way_problem, is_free, read_fact_values
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import VOID, build_not_run_result, find_last_answer
from modeshift.messages.thinking import drop_unbound_thinking, join_history, split_history
from modeshift.models.usage import NO_FILL
from modeshift.modes.choice import Seen, choose
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.facts import APPROVED
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Event, Phase
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import change_mode
from modeshift.threads.state import State, Switch, Update, list_switches
from modeshift.turns.briefing import describe_handover
from modeshift.turns.subtasks import is_as_approved


@dataclass(frozen=True)
class DueSwitch:
    """An approved switch, or why it must not take effect any more."""

    switch: Switch | None
    """None if it must not: the mode or the limit has changed, or its edge is not open any more."""
    why: str
    """Why it must not, as the model is told."""
    way: Way
    facts: Values
    """The facts that decide on it."""
    event: Event
    """The event by which it takes effect."""


async def find_due_switch(deps: AgentDeps, state: State, changed: Update) -> DueSwitch:
    """The thread's switch; ``changed`` is a change of mode by the host since."""
    switch = state.get("switch")
    if switch is None:
        raise InvalidInputError("phase 'switching' without an approved switch in the state")
    way = Way.TASK if switch.get("task") else Way.ASK
    if switch.get("how") == "by hand":
        way = Way.HAND
    targets = [switch["mode_slug"]]
    facts = await read_fact_values(deps, state.get("facts", {}), state["mode"], targets, way)
    problem = _find_problem(deps, state, switch, way, facts)
    is_valid = not changed and problem is None and is_as_approved(deps, state, switch)
    (event,) = choose(Phase.SWITCHING, Seen(has_switch=True))
    return DueSwitch(switch if is_valid else None, problem or VOID, way, facts, event)


def _find_problem(
    deps: AgentDeps, state: State, switch: Switch, way: Way, facts: Values
) -> str | None:
    """Why it cannot be applied any more, by the edge; None if it can."""
    source, target = state["mode"], switch["mode_slug"]
    if way is Way.HAND or target not in deps.catalog or source not in deps.catalog:
        return None
    if problem := find_way_problem(deps, source, target, way, facts):
        return problem
    is_still_free = switch.get("how") != "by edge" or is_free(
        deps, source, target, state.get("remembered", ()), state.get("limit")
    )
    return None if is_still_free else "A person has to say yes by now; ask again."


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
    """The update that goes on without the switch; ``why`` is told the model."""
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
