"""Which thinking of earlier answers is sent back: Anthropic's, and OpenAI's reasoning.

The newest models check that what stands before a thinking block is what stood there when it was
written: the system prompt and the tools, which ``prefix`` is a digest of, and the messages. What
is noted with an answer says so; thinking without that is of an older version or of somebody else.
"""

import json
from collections.abc import Sequence
from hashlib import sha256

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from modeshift.messages.instructions import get_api
from modeshift.messages.normal_form import Block

_KINDS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_PREFIX = "prefix"
_HISTORY = "history"
"""Keys in the metadata of an answer: digests of what stood before it."""


def record_prefix(answer: AIMessage, prefix: str, earlier: Sequence[AnyMessage]) -> AIMessage:
    """``answer``, to the history ``earlier``, with what stood before it noted in its metadata."""
    metadata = {**answer.response_metadata, _PREFIX: prefix}
    if has_thinking(answer):
        metadata[_HISTORY] = _digest_history(earlier)
    return answer.model_copy(update={"response_metadata": metadata})


def select_thinking(messages: Sequence[AnyMessage], prefix: str | None) -> list[AnyMessage]:
    """``messages`` with the thinking that is to be sent back behind ``prefix``; None for none.

    What was written before another prefix's stays away for good: the service accepts that blocks
    are left out from some point on, but not that they come back.
    """
    selected: list[AnyMessage] = []
    for message in reversed(messages):
        thinks = isinstance(message, AIMessage) and has_thinking(message)
        if thinks and (prefix is None or message.response_metadata.get(_PREFIX) != prefix):
            prefix = None
            selected.append(_strip(message))
        else:
            selected.append(message)
    return selected[::-1]


def drop_unbound_thinking(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], int]:
    """The history without the thinking that no service takes back, and how much was dropped.

    Once somebody has edited or removed a message, no later thinking fits. Of thinking that has
    nothing noted none goes back, and none before it: it may have stayed away already.
    """
    remaining: list[AnyMessage] = []
    dropped = 0
    is_edited = False
    for message in messages:
        kept: AnyMessage = message
        if isinstance(message, AIMessage) and _HISTORY in message.response_metadata:
            digest = _digest_history(remaining)
            is_edited = is_edited or message.response_metadata[_HISTORY] != digest
            if is_edited:
                dropped += has_thinking(message)
                # The next answer's digest starts from this one's.
                metadata = {**message.response_metadata, _HISTORY: digest}
                kept = _strip(message).model_copy(update={"response_metadata": metadata})
        elif has_thinking(message):
            dropped += sum(map(has_thinking, remaining)) + 1
            remaining, kept = [*map(_strip, remaining)], _strip(message)
        remaining.append(kept)
    return remaining, dropped


def split_history(
    messages: Sequence[AnyMessage], start: str | None
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """What is left out of the history, and what is sent of it: all from the message ``start`` on.

    With it go the user's words; a summary comes before them, for no request ends with one.
    """
    ids = [message.id for message in messages] if start else []
    at = ids.index(start) if start in ids else 0
    leads = at > 0 and not getattr(messages[at], "tool_calls", None)
    left_out, summary = [*messages[:at]], messages[at : at + leads]
    said = (message for message in left_out if isinstance(message, HumanMessage))
    return left_out, [*summary, *said, *messages[at + leads :]]


def join_history(left_out: Sequence[AnyMessage], sent: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The history again, when something has become of what is sent."""
    ids = {message.id for message in left_out}
    return [*left_out, *(message for message in sent if message.id not in ids)]


def find_last_prefix(messages: Sequence[AnyMessage], api: str) -> str | None:
    """The prefix of the last answer that this API gave."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and get_api(message) == api:
            return message.response_metadata.get(_PREFIX)
    return None


def has_thinking(message: AnyMessage) -> bool:
    """Whether the message has a block of thinking."""
    return isinstance(message.content, list) and any(map(_is_thinking, message.content))


def _digest_history(messages: Sequence[AnyMessage]) -> str:
    """A digest of the last answer's digest, and of the messages since."""
    parts: list[str] = []
    for message in reversed(messages):
        parts.append(_describe(message))
        if digest := message.response_metadata.get(_HISTORY):
            parts.append(digest)
            break
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _describe(message: AnyMessage) -> str:
    content = _strip(message).content if isinstance(message, AIMessage) else message.content
    calls = message.tool_calls if isinstance(message, AIMessage) else None
    result = message.tool_call_id if isinstance(message, ToolMessage) else None
    return json.dumps([message.type, content, calls, result], sort_keys=True)


def _strip(message: AnyMessage) -> AnyMessage:
    if not has_thinking(message):
        return message
    content = [block for block in message.content if not _is_thinking(block)]
    return message.model_copy(update={"content": content})


def _is_thinking(block: Block) -> bool:
    return isinstance(block, dict) and block.get("type") in _KINDS
