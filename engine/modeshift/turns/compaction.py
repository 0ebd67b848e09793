"""``compact``: puts a summary in the place of a history that outgrows the model's window.

What a person approved, what is remembered and the todo list stay as they are, and the earlier
checkpoints keep the whole history.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import takewhile
from math import inf
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Overwrite

from modeshift.messages.from_model import is_complete
from modeshift.messages.instructions import keep_first, place
from modeshift.messages.thinking import drop_unbound_thinking, join_history, split_history
from modeshift.models.bound_model import call_model
from modeshift.models.usage import NO_FILL, Usage, add_usage, count_answer
from modeshift.modes.errors import ConfigurationError, ProviderError, TooLongError
from modeshift.modes.phases import Phase, Seen, choose
from modeshift.prompts import render_summary_request
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.threads.seats import Seat
from modeshift.threads.state import State, Update
from modeshift.turns.briefing import describe_handover

MAX_RESULT = 2_000
"""Characters that are left of a tool's result where it would be too long."""


estimate_tokens = count_tokens_approximately
"""Four letters to a token; no tokenizer is known here."""


def replace_by_summary(
    messages: Sequence[AnyMessage], summary: AIMessage, budget: int
) -> list[AnyMessage]:
    """``summary``, the user's last message, and what comes last within ``budget`` tokens.

    No thinking is left that was bound to what stood before it.
    """
    tail = _take_last(messages, budget) or _take_last([*map(_cut, messages)], budget)
    human = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    first = len(messages) - len(tail)
    if places := [index for index in human if index >= first]:
        tail = tail[places[0] - first :]
    elif human and (tail or not isinstance(messages[-1], AIMessage)):
        tail = [messages[human[-1]], *tail]
    return drop_unbound_thinking([summary, *tail])[0]


def split_for_summary(
    messages: Sequence[AnyMessage], budget: int
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """The first messages (one at least, results cut) within ``budget`` tokens; and the others."""
    first = [_cut(message) for message in messages]
    end = 0
    for number, message in enumerate(first, 1):
        budget -= estimate_tokens([message])
        if budget < 0 and end:
            break
        if number == len(first) or not isinstance(first[number], ToolMessage):
            end = number
    return drop_unbound_thinking(first[:end])[0], [*messages[end:]]


def _take_last(messages: Sequence[AnyMessage], budget: int) -> list[AnyMessage]:
    start = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        budget -= estimate_tokens([messages[index]])
        if budget < 0:
            break
        if not isinstance(messages[index], ToolMessage):
            start = index
    return [*messages[start:]]


def _cut(message: AnyMessage) -> AnyMessage:
    if not isinstance(message, ToolMessage) or len(text := message.text) <= MAX_RESULT:
        return message
    half = MAX_RESULT // 2
    note = f"[{len(text) - MAX_RESULT} characters left out]"
    # In the middle: at the end are marks that say where a file's words end.
    return message.model_copy(update={"content": f"{text[:half]}\n{note}\n{text[-half:]}"})


DUE_AT = 0.85
"""How full the window may get."""
BOUNDED_DUE_AT = 0.7
"""How full it may get where an answer may take a quarter of it, for which a server wants room."""


def is_due(deps: AgentDeps, seat: Seat, state: State) -> bool:
    """Whether the history is to be summarized before the model is asked.

    Raises ``ConfigurationError`` if the model cannot be asked: its window does not even hold the
    prompt, or its server leaves the tools out.
    """
    window, server = seat.model.window, seat.model.service.server
    if window is not None and seat.prompt_size > window:
        raise build_server_error(seat, describe_window(deps, seat, state))
    if server is not None and server.has_tools is False:
        raise build_server_error(seat, deps.models.problem(seat.mode) or "")
    if state.get("compact"):
        return True
    if window is None or not may_compact(state):
        return False
    due_at = DUE_AT if seat.model.service.max_tokens is None else BOUNDED_DUE_AT
    return _estimate_request(seat, state) >= due_at * window


def build_server_error(seat: Seat, problem: str) -> ConfigurationError:
    """An error that a person mends at the model's server, which is asked again the next time."""
    seat.model.service.server = None
    return ConfigurationError(problem)


def describe_window(deps: AgentDeps, seat: Seat, state: StateValues) -> str:
    """That the window is too small for the mode's first request, and which modes fit."""
    usable = [slug for slug, mode in deps.catalog.items() if deps.models.problem(mode) is None]
    seats = {slug: deps.seat_in(state, slug) for slug in usable}
    sizes = {slug: each.first_request_size for slug, each in seats.items()}
    fits = [slug for slug, each in seats.items() if sizes[slug] < (each.model.window or inf)]
    listed = ", ".join(f"{slug} {size:,}" for slug, size in sizes.items())
    fitting = f"modes that fit: {', '.join(fits)}" if fits else "no mode fits"
    return (
        f"the model {seat.model.name!r} reads {seat.model.window:,} tokens, and the first request "
        f"of a mode has about: {listed}; {fitting}; start its server with a larger window, set "
        "CONTEXT_WINDOW to what it really reads, or MODEL to a model that reads more"
    )


def may_compact(state: State) -> bool:
    """Whether there is something to summarize, and enough of it is new."""
    at_least = state.get("compact_from", 0)
    if at_least is None or len(state["messages"]) < at_least:
        return False
    return any(isinstance(message, AIMessage) for message in state["messages"])


def _estimate_request(seat: Seat, state: State) -> int:
    """The tokens of the next request: what the provider counted at the last, and what is new."""
    messages, last = state["messages"], state.get("usage", {}).get("last")
    if last is None or last["used"] is None:
        return seat.prompt_size + estimate_tokens(messages)
    new = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return last["used"] + estimate_tokens([*new])


HEADER = (
    "[Summary of the conversation so far; of its messages only the last ones follow, which are "
    "summarized too.]"
)

NO_SUMMARY = (
    "[The conversation so far was too long, and could not be summarized. Of its earlier messages "
    "these are the user's:]"
)


async def ask_for_summary(
    deps: AgentDeps, seat: Seat, state: State, config: RunnableConfig, budget: int
) -> AsyncIterator[AIMessage]:
    """The answers, the last of which is about all of the conversation.

    Asked as the next message of the conversation, all of which is in the provider's cache. If the
    whole is longer than the model reads, it gets parts of ``budget`` tokens or less, each with the
    summary of those before.
    """
    part, left = [*state.get("messages", [])], list[AnyMessage]()
    instructions = state.get("instructions", [])
    if not any(isinstance(message, AIMessage) for message in part):
        raise ProviderError("there is nothing to summarize yet")
    request = HumanMessage(render_summary_request(has_files=deps.toolbox.has_workspace))
    config = merge_configs(config, {"tags": [TAG_NOSTREAM]})
    before: list[AnyMessage] = []
    while part:
        sent = [*before, *part]
        first, in_place = place(instructions, sent)
        known = [*first, *in_place]
        try:
            answer = await call_model(seat.model, [*sent, request], config, known)
        except TooLongError:
            smaller, more = split_for_summary(part, budget)
            if smaller == part:
                raise
            part, left, budget = smaller, [*more, *left], budget // 2
            continue
        yield answer
        before = [build_summary(answer, "")]
        part, left = split_for_summary(left, budget)


def build_left_out_note(
    messages: Sequence[AnyMessage], kept: Sequence[AnyMessage], files: str
) -> AIMessage:
    """What says, in the place of messages that the model did not summarize, what they were.

    That is the user's own, and what was in the place of still earlier ones.
    """
    ids = {message.id for message in kept}
    texts = [
        message.text
        for message in messages
        if message.id not in ids and (isinstance(message, HumanMessage) or is_summary(message))
    ]
    return AIMessage("\n\n".join([NO_SUMMARY, *texts]) + f"\n{files}".rstrip(), id=str(uuid4()))


def is_summary(message: AnyMessage) -> bool:
    """Whether it stands in the place of earlier messages."""
    return message.text.startswith((HEADER, NO_SUMMARY))


def build_summary(answer: AIMessage, files: str) -> AIMessage:
    """The message in the place of the history, with the ``files`` written until now."""
    if answer.tool_calls or not is_complete(answer):
        outcome = "called a tool" if answer.tool_calls else "gave no complete answer"
        raise ProviderError(f"asked for a summary, the model {outcome}")
    return AIMessage(f"{HEADER}\n\n{answer.text.strip()}\n{files}".rstrip(), id=answer.id)


def list_written_files(deps: AgentDeps, slug: str, state: State) -> Iterator[str]:
    """A line for each mode that wrote files in this conversation, such as a plan."""
    written: dict[str, dict[str, None]] = {}
    parents = state.get("parents")
    since = parents[-1]["changes"] if parents else 0
    records = state.get("mode_changes", [])[since:]
    changes = [(record["source"], record.get("written", [])) for record in records]
    for mode, files in [*changes, (slug, state.get("written", []))]:
        written.setdefault(mode, {}).update(dict.fromkeys(files))
    for mode, names in written.items():
        name = deps.catalog.get_name(mode)
        yield describe_handover(name, [*names])


log = logging.getLogger("modeshift")

KEPT = 0.2
"""How much is kept beside the summary: of the end of the window, or of a shorter history."""
CUT_TO = 0.5
"""How much of the same is summarized if the whole is too long even for that."""
MUST_SAVE = 0.2
"""How much of the history a summary has to save."""
MIN_NEW = 8
"""Messages that must be new before the history is summarized again in the same turn."""


async def compact(
    deps: AgentDeps, state: State, config: RunnableConfig, slug: str
) -> tuple[str, Update]:
    """Summarizes the history, or says why not and leaves it: the event, and the update."""
    left_out, messages = split_history(state.get("messages", []), state.get("fresh_from"))
    state = {**state, "messages": messages}
    is_turn = bool(messages) and not isinstance(messages[-1], AIMessage)
    update = Update(compact=False)
    seat = deps.seat_in(state, slug)
    size, window = estimate_tokens(messages), seat.model.window
    room = min(window or size, size)
    files = "".join(list_written_files(deps, slug, state))
    if plan := state.get("approved_plan"):
        files += f"\nThe plan that the user approved, {plan['path']}:\n\n{plan['text']}"
    usage, room_left = Usage(), int(room * KEPT)
    try:
        if state.get("compact_from", 0) is None and not state.get("compact"):
            # It was asked for in this turn, and the history is too long for the model.
            text = "What the user said, and no summary,"
            remaining = replace_by_summary(messages, AIMessage(""), room_left)
            note = build_left_out_note(messages, remaining, files)
            shorter = replace_by_summary(messages, note, room_left)
        else:
            answers = ask_for_summary(deps, seat, state, config, int(room * CUT_TO))
            async for answer in answers:
                usage = add_usage(usage, count_answer(answer, seat.model.name, window))
            summary, text = build_summary(answer, files), "A summary"
            shorter = replace_by_summary(messages, summary, room_left)
            if estimate_tokens(shorter) > size * (1 - MUST_SAVE):
                raise ProviderError("with the model's summary it would hardly be shorter")
        usage.pop("last", None)
    except ProviderError as error:
        log.warning("a conversation could not be summarized: %s", error)
        update |= Update(usage=usage, compact_from=None)
        notice = f"The conversation could not be summarized and stays as it is: {error}"
    else:
        update |= Update(
            messages=Overwrite(join_history(left_out, shorter)),
            fresh_from=shorter[0].id if left_out else None,
            instructions=Overwrite(keep_first(state.get("instructions", []))),
            usage={**usage, **NO_FILL},
            compact_from=len(shorter) + MIN_NEW,
        )
        notice = (
            f"{text} is in the place of the conversation's earlier messages: about "
            f"{estimate_tokens(shorter):,} tokens instead of {size:,}. The messages stay in "
            "the thread's checkpoints."
        )
    update["notices"] = [*state.get("notices", []), notice]
    (event,) = choose(Phase.COMPACTING, Seen(is_turn=is_turn))
    return event, update
