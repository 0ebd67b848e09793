"""``ask_model``: the model's answer; and which event may follow from it."""

import asyncio
from collections.abc import Collection, Sequence
from typing import cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from modeshift.messages.instructions import Instruction, place
from modeshift.messages.thinking import split_history
from modeshift.models.bound_model import call_model
from modeshift.models.usage import Usage, count_answer
from modeshift.modes.errors import CeilingError, ConfigurationError, ProviderError, TooLongError
from modeshift.modes.phases import Event, Phase, Seen, choose
from modeshift.observing import Report, observe
from modeshift.threads.state import Update
from modeshift.turns.briefing import list_news
from modeshift.turns.ceiling import ask_to_go_on
from modeshift.turns.compaction import build_server_error, describe_window, is_due, may_compact
from modeshift.turns.start import Start
from modeshift.turns.subtasks import list_other_calls


async def ask_model(
    start: Start, slug: str, config: RunnableConfig, notes: Sequence[Instruction]
) -> tuple[AIMessage | Event, Update]:
    """The model's answer, or the event in its place; and the update.

    The event says that the history is to be summarized first, or that the sub-task has failed.
    ``notes`` are what the node itself tells the model.
    """
    try:
        allowed = await ask_to_go_on(start) if start.deps.ceilings else Usage()
        answer, update = await _ask(start, slug, config, notes)
    except (ProviderError, ConfigurationError, CeilingError) as error:
        if (subtask := start.state.get("subtask")) is None:
            if not isinstance(error, CeilingError):
                raise
            answer = AIMessage(str(error))
            return answer, Update(messages=[answer])
        (event,) = choose(Phase.THINKING, Seen(in_subtask=True, has_failed=True))
        return event, Update(subtask={**subtask, "failure": str(error)})
    if allowed:
        update["usage"] = {**cast("Usage", update.get("usage", {})), **allowed}
    return answer or choose(Phase.THINKING, Seen(needs_summary=True))[0], update


async def _ask(
    start: Start, slug: str, config: RunnableConfig, notes: Sequence[Instruction]
) -> tuple[AIMessage | None, Update]:
    """As ``ask_model``; None if the history is to be summarized first."""
    deps, state = start.deps, start.state
    if fresh_from := state.get("fresh_from"):
        sent = split_history(state["messages"], fresh_from)[1]
        state = {**state, "messages": sent}
    seat = deps.seat_in(state, slug)
    if seat.model.service.server is None:
        await asyncio.to_thread(deps.learn, seat.mode)
        seat = deps.seat_in(state, slug)
    # Commands that run in the background with the rights of another mode end here.
    await deps.started_calls.background.end(start.thread, unless=seat.environment)
    if is_due(deps, seat, state):
        return None, {}
    messages = state["messages"]
    first, in_place = place(state.get("instructions", []), messages)
    instructions = [*in_place, *notes]
    news = await list_news(deps, seat, state, instructions)
    try:
        with observe("model", model=seat.model.name) as counted:
            words = [*first, *instructions, *news]
            taken = list_other_calls(start.state)
            answer = await call_model(seat.model, messages, config, words, taken)
            name, window = seat.model.name, seat.model.window
            usage = count_answer(answer, name, window)
            counted.update(cast("Report", usage["thread"][name]))
    except TooLongError:
        if len(messages) == 1 and seat.model.window is not None:
            raise build_server_error(seat, describe_window(deps, seat, state)) from None
        # Once more if there was no summary: it is shortened without one then.
        if state.get("compact_from", 0) is not None and not may_compact(state):
            raise
        return None, {}
    update = Update(messages=[answer], usage=usage)
    if notes or news:
        update["instructions"] = [*notes, *news]
    return answer, update


def choose_event(
    start: Start, answer: AIMessage | None, event: str, more: Collection[str]
) -> Event:
    """The engine's event, where it follows from the answer: of a sub-task, that is its end.

    ``more`` are the names of what is sent along. Raises ``NodeError``.
    """
    has_calls, is_asked = "due_calls" in more, "asked" in more
    is_judged = answer is not None and (has_calls or is_asked or not answer.tool_calls)
    needed = Event.REVIEW if is_asked else Event.ACT if has_calls else Event.ANSWER
    if start.phase != Phase.THINKING or not is_judged or event != needed:
        raise start.refuse(
            f"cannot send {event!s} here: the answer, as judged, does not lead there"
        )
    in_subtask = start.state.get("subtask") is not None
    return choose(Phase.THINKING, Seen(has_calls, is_asked, in_subtask=in_subtask))[0]
