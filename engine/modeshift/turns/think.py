"""``ask_model``: the model's answer; and a switch that a person approved, applied."""

import asyncio
from collections.abc import Sequence
from typing import Literal, cast

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from modeshift.calls.requests import describe_switch
from modeshift.messages.instructions import Instruction, place
from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import VOID, build_not_run_result
from modeshift.models.bound_model import call_model
from modeshift.models.usage import count_answer
from modeshift.modes.errors import InvalidInputError, TooLongError
from modeshift.modes.machine import Configuration
from modeshift.observing import Report, observe
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import change_mode
from modeshift.threads.state import State, Switch, Update, list_switches
from modeshift.turns.briefing import describe_handover, list_news
from modeshift.turns.compaction import build_window_error, is_due, may_compact
from modeshift.turns.subtasks import is_as_approved, list_other_calls


async def ask_model(
    deps: AgentDeps,
    slug: str,
    state: State,
    thread: str,
    config: RunnableConfig,
    notes: Sequence[Instruction],
) -> tuple[AIMessage | None, Update]:
    """The model's answer, and the update with it; None if the history is to be summarized first.

    ``notes`` are what the node itself tells the model.
    """
    seat = deps.seat_in(state, slug)
    if seat.model.service.server is None:
        await asyncio.to_thread(deps.learn, seat.mode)
        seat = deps.seat_in(state, slug)
    # Commands that run in the background with the rights of another mode end here.
    await deps.started_calls.background.end(thread, unless=seat.environment)
    if is_due(deps, seat, state):
        return None, {}
    messages = state["messages"]
    first, in_place = place(state.get("instructions", []), messages)
    instructions = [*in_place, *notes]
    news = await list_news(deps, seat, state, instructions)
    try:
        with observe("model", model=seat.model.name) as counted:
            words = [*first, *instructions, *news]
            taken = list_other_calls(state)
            answer = await call_model(seat.model, messages, config, words, taken)
            name, window = seat.model.name, seat.model.window
            usage = count_answer(answer, name, window)
            counted.update(cast("Report", usage["thread"][name]))
    except TooLongError:
        if len(messages) == 1 and seat.model.window is not None:
            raise build_window_error(deps, seat, state) from None
        # Once more if there was no summary: it is shortened without one then.
        if state.get("compact_from", 0) is not None and not may_compact(state):
            raise
        return None, {}
    update = Update(messages=[answer], usage=usage)
    if notes or news:
        update["instructions"] = [*notes, *news]
    return answer, update


def find_approved_switch(deps: AgentDeps, state: State) -> Switch | None:
    """The switch that is due; None if the mode or the limit has changed since it was approved."""
    switch = state.get("switch")
    if switch is None:
        raise InvalidInputError("phase 'switching' without an approved switch in the state")
    return switch if is_as_approved(deps, state, switch) else None


def apply_switch(deps: AgentDeps, state: State, switch: Switch, before: Configuration) -> Update:
    """The next step has the new mode's tools and prompt."""
    how = switch.get("how")
    decider: Literal["human", "nobody"] = "nobody" if how == "by edge" else "human"
    target, reason = switch["mode_slug"], switch["reason"]
    update = change_mode(state, before.mode, target, reason, decider, how)
    update |= {"switch": None, "switched": state.get("switched", 0) + 1}
    update["messages"] = [_build_result(deps, state, switch, before)]
    if switch["approvals"] is not None:
        update["approvals"] = switch["approvals"]
    return update


def drop_switch(state: State, why: str = VOID) -> Update:
    """Go on without it."""
    results = [build_not_run_result(due["call"], why) for due in list_switches(state.get("switch"))]
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
