"""``accept_messages``: a client's messages, checked, in a form that every provider accepts.

A message that a provider refuses would stay in the history, and every later request would fail.
"""

import re
from base64 import b64decode
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_messages
from langgraph.types import Overwrite

from modeshift.graph.messages.normal_form import normalize
from modeshift.modes.errors import InvalidInputError
from modeshift.tools.calls.arguments import find_unserializable


def accept_messages(given: Any) -> list[AnyMessage]:
    """The user's and the assistant's messages; results of tools are dropped.

    A chat UI that lets the user type while an approval waits sends a made-up result along;
    ``intake`` supplies the true one. Raises ``InvalidInputError`` for any other message.
    """
    kept: list[AnyMessage] = []
    for message in _convert(given):
        if isinstance(message, HumanMessage):
            kept.append(_user_message(message))
        elif isinstance(message, AIMessage):
            kept.append(_assistant_message(message))
        elif not isinstance(message, ToolMessage):
            raise InvalidInputError(
                f"a run's input takes no {message.type!r} message; send role 'user'"
            )
    return kept


def check_history(given: Any) -> None:
    """Raise ``InvalidInputError`` for messages that a host may not write into a history.

    Allowed are those that ``check_kept`` accepts, and ``RemoveMessage``.
    """
    match given:
        case Overwrite(value=value) | {"__overwrite__": value}:
            given = [] if value is None else value
    for message in _convert(given):
        if not isinstance(message, RemoveMessage):
            check_kept(message)


def check_kept(message: BaseMessage) -> None:
    """Raise ``InvalidInputError`` for a message that providers refuse in a history."""
    if isinstance(message, HumanMessage):
        _user_message(message)
    elif not isinstance(message, AIMessage | ToolMessage):
        raise InvalidInputError(f"a thread's history takes no {message.type!r} message")
    elif isinstance(message, AIMessage) and not all(call["id"] for call in message.tool_calls):
        raise InvalidInputError(f"a call without an id in the message {message.id!r}")


def _convert(given: Any) -> list[BaseMessage]:
    try:
        messages = convert_to_messages(given if isinstance(given, list) else [given])
    except (ValueError, TypeError, NotImplementedError, LookupError) as error:
        raise InvalidInputError(
            f"messages {repr(given)[:300]} are not messages: {error}"
        ) from error
    for message in messages:
        if found := find_unserializable(message.content):
            raise InvalidInputError(f"the message {repr(message.content)[:300]} holds {found}")
    return messages


def _assistant_message(message: AIMessage) -> AIMessage:
    """Only its text and calls: a provider accepts thinking, for instance, only if it wrote it.

    The calls get new ids: the client's may be in the thread already.
    """
    calls = [{**call, "id": None} for call in message.tool_calls]
    unread = [{**call, "id": None} for call in message.invalid_tool_calls]
    return normalize(
        AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread, id=message.id)
    )


_IMAGE = re.compile(r"https?://\S+|data:image/(?:png|jpeg|gif|webp);base64,(?P<data>.+)")


def _user_message(message: HumanMessage) -> HumanMessage:
    """The message built anew, without fields that a provider may not know."""
    content = message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kept: list[str | dict[Any, Any]]
    kept = [one for block in blocks if (one := _convert_block(block)) is not None]
    if not kept:
        raise InvalidInputError("the user's message is empty")
    return HumanMessage(content if isinstance(content, str) else kept, id=message.id)


def _convert_block(block: str | dict[str, Any]) -> dict[str, Any] | None:
    """A text or image block in the form that every provider takes; None for empty text."""
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text} if text.strip() else None
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image_block(url)
        case {"type": "image", "url": str(url)}:
            return _image_block(url)
        case {"type": "image"}:
            data = block.get("base64", block.get("data"))
            kind = block.get("mime_type", block.get("mimeType"))
            if isinstance(data, str) and isinstance(kind, str):
                return _image_block(f"data:{kind};base64,{data}")
    raise InvalidInputError(
        f"a user's message takes no block {str(block)[:200]!r}; it takes text, and image_url or "
        "image with a url or with base64 and mime_type"
    )


def _image_block(url: str) -> dict[str, Any]:
    found = _IMAGE.fullmatch(url)
    try:
        if found is not None and found["data"] is not None:
            b64decode(found["data"], validate=True)
    except ValueError:
        found = None
    if found is None:
        raise InvalidInputError(
            "an image must be at http(s)://, or data:image/(png|jpeg|gif|webp);base64, "
            f"not {url[:60]!r}"
        )
    return {"type": "image_url", "image_url": {"url": url}}
