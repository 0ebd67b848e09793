"""``compact_history``: puts a summary in the place of a history that outgrows the model's window.

What a person approved, what is remembered and what is to do stay as they are, and the checkpoints
before keep the whole history.
"""

import logging
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Overwrite

from graph.deps import AgentDeps
from graph.messages.from_model import is_complete
from graph.messages.instructions import list_in_place
from graph.messages.shortening import cut_for_summary, estimate_tokens, replace_by_summary
from graph.models.bound_model import call_model
from graph.models.usage import NO_FILL, Usage, count_answer
from graph.routing import Node, reconcile_mode
from graph.state import State, get_depth
from graph.switch import describe_handover
from modes.errors import ConfigurationError, ProviderError, TooLongError
from modes.machine import Event
from prompts import render_summary_request

log = logging.getLogger("modeshift")

DUE_AT = 0.85
"""Of the window: how full it may get."""
KEPT = 0.2
"""Of the window, or of a shorter history: how much of its end is kept beside the summary."""
CUT_TO = 0.5
"""Of the same: how much is summarized if the whole is too long even for that."""
MUST_SAVE = 0.2
"""Of the history: what a summary has to save."""
MIN_NEW = 8
"""Messages that must be new before the history is summarized again in the same turn."""
HEADER = (
    "[Summary of the conversation so far; of its messages only the last ones follow, which are "
    "summarized too.]"
)


def is_due(deps: AgentDeps, slug: str, state: State) -> bool:
    """Whether the history is to be summarized before the model is asked.

    Raises ``ConfigurationError`` if the window cannot even hold the prompt.
    """
    window = deps.bound_model(slug).window
    if window is not None and (size := deps.prompt_size(slug, get_depth(state))) > window:
        name = deps.catalog[slug].name
        raise ConfigurationError(
            f"the model {deps.bound_model(slug).name!r} reads {window:,} tokens at most, and the "
            f"prompt and the tools of {name} mode alone take about {size:,}; set CONTEXT_WINDOW "
            "to what it really reads, or MODEL to a model that reads more"
        )
    if state.get("compact"):
        return True
    if window is None or not may_compact(state):
        return False
    return _estimate_request(deps, slug, state) >= DUE_AT * window


def may_compact(state: State) -> bool:
    """Whether there is something to summarize, and enough of it is new."""
    at_least = state.get("compact_from", 0)
    if at_least is None or len(state["messages"]) < at_least:
        return False
    return any(isinstance(message, AIMessage) for message in state["messages"])


def _estimate_request(deps: AgentDeps, slug: str, state: State) -> int:
    """The tokens of the next request: what the provider counted at the last, and what is new."""
    messages, last = state["messages"], state.get("usage", {}).get("last")
    if last is None or last["used"] is None:
        return deps.prompt_size(slug, get_depth(state)) + estimate_tokens(messages)
    new = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return last["used"] + estimate_tokens([*new])


def compact_node(deps: AgentDeps) -> Node:
    """Summarizes the history, or says why not and leaves it as it is."""

    async def compact_history(state: State, config: RunnableConfig) -> dict[str, Any]:
        now, update = reconcile_mode(deps, state)
        messages = state.get("messages", [])
        is_turn = bool(messages) and not isinstance(messages[-1], AIMessage)
        after = deps.machine.send(now, Event.COMPACTED if is_turn else Event.COMPLETE)
        update |= {"mode": now.mode, "phase": after.phase.value, "compact": False}
        bound = deps.bound_model(now.mode, state.get("limit"), get_depth(state))
        size, window = estimate_tokens(messages), bound.window
        room = min(window or size, size)
        usage = Usage()
        try:
            answer = await _ask_for_summary(deps, now.mode, state, config, int(room * CUT_TO))
            usage = count_answer(answer, bound.name, window)
            del usage["last"]
            summary = _build_summary(answer, "".join(_list_files(deps, now.mode, state)))
            shorter = replace_by_summary(messages, summary, int(room * KEPT))
            left = estimate_tokens(shorter)
            if left > size * (1 - MUST_SAVE):
                raise ProviderError("with the model's summary it would hardly be shorter")
        except ProviderError as error:
            log.warning("a conversation could not be summarized: %s", error)
            update |= {"usage": usage, "compact_from": None}
            notice = f"The conversation could not be summarized and stays as it is: {error}"
        else:
            update |= {
                "messages": Overwrite(shorter),
                "instructions": Overwrite([]),
                "usage": {**usage, **NO_FILL},
                "compact_from": len(shorter) + MIN_NEW,
            }
            notice = (
                f"A summary is in the place of the conversation's earlier messages: about {left:,} "
                f"tokens instead of {size:,}. The messages stay in the thread's checkpoints."
            )
        return update | {"notices": [*state.get("notices", []), notice]}

    return compact_history


async def _ask_for_summary(
    deps: AgentDeps, slug: str, state: State, config: RunnableConfig, budget: int
) -> AIMessage:
    """Asked as the next message of the conversation, all of which is in the provider's cache.

    If the whole is longer than the model reads, it gets what fits into ``budget`` tokens.
    """
    messages = state.get("messages", [])
    told = list_in_place(messages, state.get("instructions", []))
    if not any(isinstance(message, AIMessage) for message in messages):
        raise ProviderError("there is nothing to summarize yet")
    bound = deps.bound_model(slug, state.get("limit"), get_depth(state))
    request = HumanMessage(render_summary_request())
    config = merge_configs(config, {"tags": [TAG_NOSTREAM]})
    try:
        return await call_model(bound, [*messages, request], config, told)
    except TooLongError:
        shorter = cut_for_summary(messages, budget)
        if not shorter:
            raise
        left = list_in_place(shorter, told)
        return await call_model(bound, [*shorter, request], config, left)


def _build_summary(answer: AIMessage, files: str) -> AIMessage:
    if answer.tool_calls or not is_complete(answer):
        what = "called a tool" if answer.tool_calls else "gave no complete answer"
        raise ProviderError(f"asked for a summary, the model {what}")
    return AIMessage(f"{HEADER}\n\n{answer.text.strip()}\n{files}".rstrip(), id=answer.id)


def _list_files(deps: AgentDeps, slug: str, state: State) -> Iterator[str]:
    """A line for each mode that wrote files in this conversation, such as a plan."""
    written: dict[str, dict[str, None]] = {}
    parents = state.get("parents")
    since = parents[-1]["changes"] if parents else 0
    records = state.get("mode_changes", [])[since:]
    changes = [(one["source"], one.get("written", [])) for one in records]
    for mode, files in [*changes, (slug, state.get("written", []))]:
        written.setdefault(mode, {}).update(dict.fromkeys(files))
    for mode, names in written.items():
        name = deps.catalog[mode].name if mode in deps.catalog else mode
        yield describe_handover(name, [*names])
