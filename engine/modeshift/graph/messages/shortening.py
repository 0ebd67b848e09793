"""A history with less in it: its last messages, behind a summary of the others or without one.

A call is never parted from its result.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from modeshift.graph.messages.thinking import drop_unbound_thinking

MAX_RESULT = 2_000
"""Characters that are left of a tool's result where it would be too long."""


def estimate_tokens(messages: Sequence[AnyMessage]) -> int:
    """Four letters to a token; no tokenizer is known here."""
    return count_tokens_approximately(messages)


def replace_by_summary(
    messages: Sequence[AnyMessage], summary: AIMessage, budget: int
) -> list[AnyMessage]:
    """``summary``, the user's last message, and what comes last within ``budget`` tokens.

    No thinking is left that was bound to what stood before it.
    """
    tail = _take_last(messages, budget) or _take_last([*map(_cut, messages)], budget)
    said = [index for index, one in enumerate(messages) if isinstance(one, HumanMessage)]
    first = len(messages) - len(tail)
    if kept := [index for index in said if index >= first]:
        tail = tail[kept[0] - first :]
    elif said and (tail or not isinstance(messages[-1], AIMessage)):
        tail = [messages[said[-1]], *tail]
    return drop_unbound_thinking([summary, *tail])[0]


def split_for_summary(
    messages: Sequence[AnyMessage], budget: int
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """The first messages within ``budget`` tokens, one at least, and the others.

    The first are without most of what tools returned.
    """
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
