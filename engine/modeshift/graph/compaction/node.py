"""``compact_history``: puts a summary in the place of a history that outgrows the model's window.

What a person approved, what is remembered and the todo list stay as they are, and the earlier
checkpoints keep the whole history.
"""

import logging

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from modeshift.graph.compaction.summary import (
    ask_for_summary,
    build_note,
    build_summary,
    list_files,
)
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import keep_first
from modeshift.graph.messages.shortening import estimate_tokens, replace_by_summary
from modeshift.graph.models.usage import NO_FILL, Usage, add_usage, count_answer
from modeshift.graph.state import State, Update, get_depth
from modeshift.modes.errors import ProviderError
from modeshift.modes.phases import Event

log = logging.getLogger("modeshift")

KEPT = 0.2
"""Of the window, or of a shorter history: how much of its end is kept beside the summary."""
CUT_TO = 0.5
"""Of the same: how much is summarized if the whole is too long even for that."""
MUST_SAVE = 0.2
"""Of the history: what a summary has to save."""
MIN_NEW = 8
"""Messages that must be new before the history is summarized again in the same turn."""


async def compact(
    deps: AgentDeps, state: State, config: RunnableConfig, slug: str
) -> tuple[str, Update]:
    """Summarizes the history, or says why not and leaves it: the event, and the update."""
    messages = state.get("messages", [])
    is_turn = bool(messages) and not isinstance(messages[-1], AIMessage)
    update = Update(compact=False)
    bound = deps.bound_model(slug, state.get("limit"), get_depth(state))
    size, window = estimate_tokens(messages), bound.window
    room = min(window or size, size)
    files = "".join(list_files(deps, slug, state))
    usage, kept = Usage(), int(room * KEPT)
    try:
        if state.get("compact_from", 0) is None and not state.get("compact"):
            # It was asked for in this turn, and the history is too long for the model.
            what = "What the user said, and no summary,"
            shorter = _shorten(messages, files, kept)
        else:
            answers = ask_for_summary(deps, slug, state, config, int(room * CUT_TO))
            async for answer in answers:
                usage = add_usage(usage, count_answer(answer, bound.name, window))
            summary, what = build_summary(answer, files), "A summary"
            shorter = replace_by_summary(messages, summary, kept)
            if estimate_tokens(shorter) > size * (1 - MUST_SAVE):
                raise ProviderError("with the model's summary it would hardly be shorter")
        usage.pop("last", None)
    except ProviderError as error:
        log.warning("a conversation could not be summarized: %s", error)
        update |= Update(usage=usage, compact_from=None)
        notice = f"The conversation could not be summarized and stays as it is: {error}"
    else:
        update |= Update(
            messages=Overwrite(shorter),
            instructions=Overwrite(keep_first(state.get("instructions", []))),
            usage={**usage, **NO_FILL},
            compact_from=len(shorter) + MIN_NEW,
        )
        notice = (
            f"{what} is in the place of the conversation's earlier messages: about "
            f"{estimate_tokens(shorter):,} tokens instead of {size:,}. The messages stay in "
            "the thread's checkpoints."
        )
    update["notices"] = [*state.get("notices", []), notice]
    return Event.COMPACTED if is_turn else Event.COMPLETE, update


def _shorten(messages: list[AnyMessage], files: str, budget: int) -> list[AnyMessage]:
    """The last messages within ``budget`` tokens, and of the others what the user said."""
    kept = replace_by_summary(messages, AIMessage(""), budget)
    return replace_by_summary(messages, build_note(messages, kept, files), budget)
