"""Thoughts: the blocks of an answer in which the model thinks, and the mode it thought them in."""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from graph.models.optional_fields import Thoughts

_KINDS = frozenset({"thinking", "redacted_thinking"})
_MODE = "mode"
"""In the metadata of an answer with thoughts."""


def record_mode(answer: AIMessage, mode: str) -> AIMessage:
    """``answer``, and where it has thoughts, the mode they are of."""
    if not _has_thoughts(answer):
        return answer
    metadata = {**answer.response_metadata, _MODE: mode}
    return answer.model_copy(update={"response_metadata": metadata})


def select_thinking(messages: list[AnyMessage], kept: Thoughts, mode: str) -> list[AnyMessage]:
    """``messages`` with the thoughts that are to be sent back in ``mode``.

    Those from before another mode's stay away for good: Anthropic takes thoughts that are left
    out from the first on, but none that come back.
    """
    if kept == "all":
        return messages
    return [*_with(messages, mode if kept == "of this mode" else None)][::-1]


def _with(messages: Sequence[AnyMessage], mode: str | None) -> Iterator[AnyMessage]:
    """From the last to the first."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and _has_thoughts(message):
            if mode is not None and message.response_metadata.get(_MODE) == mode:
                yield message
                continue
            mode = None
            content: Any = [block for block in message.content if not _is_thought(block)]
            yield message.model_copy(update={"content": content})
        else:
            yield message


def _has_thoughts(message: AIMessage) -> bool:
    return isinstance(message.content, list) and any(map(_is_thought, message.content))


def _is_thought(block: str | dict[Any, Any]) -> bool:
    return isinstance(block, dict) and block.get("type") in _KINDS
