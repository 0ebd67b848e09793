"""``accept_messages``: what a client may say, as every provider takes it.

What a provider refuses would stay in the history, and be refused for ever.
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

from graph.messages.normal_form import normalize
from modes.errors import InvalidInputError
from tools.arguments import find_unserializable


def accept_messages(given: Any) -> list[AnyMessage]:
    """User and assistant messages. Results of tools are dropped: only a tool has results.

    A chat UI that lets the user type over a waiting approval sends a made-up
    result along; ``intake`` puts the true one in its place.
    """
    kept: list[AnyMessage] = []
    for message in _converted(given):
        if found := find_unserializable(message.content):
            raise InvalidInputError(f"the message {repr(message.content)[:300]} holds {found}")
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
    """Whether a host may write it into a history: what it keeps, and what takes messages out.

    Raises ``InvalidInputError``.
    """
    match given:
        case Overwrite(value=value) | {"__overwrite__": value}:
            given = [] if value is None else value
    for message in _converted(given):
        if found := find_unserializable(message.content):
            raise InvalidInputError(f"the message {repr(message.content)[:300]} holds {found}")
        if not isinstance(message, RemoveMessage):
            check_kept(message)


def check_kept(message: BaseMessage) -> None:
    """Raises ``InvalidInputError`` for a message that providers refuse in a history."""
    if isinstance(message, HumanMessage):
        _user_message(message)
    elif not isinstance(message, AIMessage | ToolMessage):
        raise InvalidInputError(f"a thread's history takes no {message.type!r} message")
    elif isinstance(message, AIMessage) and not all(call["id"] for call in message.tool_calls):
        raise InvalidInputError(f"a call without an id in the message {message.id!r}")


def _converted(given: Any) -> list[BaseMessage]:
    try:
        return convert_to_messages(given if isinstance(given, list) else [given])
    except (ValueError, TypeError, NotImplementedError, LookupError) as error:
        raise InvalidInputError(
            f"messages {repr(given)[:300]} are not messages: {error}"
        ) from error


def _assistant_message(message: AIMessage) -> AIMessage:
    """Its words and its calls: thoughts, say, a provider takes from itself alone.

    The calls get new ids: those that a client names may be in the thread already.
    """
    calls = [{**call, "id": None} for call in message.tool_calls]
    unread = [{**call, "id": None} for call in message.invalid_tool_calls]
    return normalize(
        AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread, id=message.id)
    )


_IMAGE = re.compile(r"https?://\S+|data:image/(?:png|jpeg|gif|webp);base64,(?P<data>.+)")


def _user_message(message: HumanMessage) -> HumanMessage:
    """Built anew: a provider refuses a field that it does not know."""
    content = message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    taken: list[str | dict[Any, Any]]
    taken = [one for block in blocks if (one := _block(block)) is not None]
    if not taken:
        raise InvalidInputError("the user's message is empty")
    return HumanMessage(content if isinstance(content, str) else taken, id=message.id)


def _block(block: str | dict[str, Any]) -> dict[str, Any] | None:
    """A block as every provider takes it; None for empty text.

    Raises ``InvalidInputError`` for any other, naming it.
    """
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text} if text.strip() else None
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image(url)
        case {"type": "image", "url": str(url)}:
            return _image(url)
        case {"type": "image"}:
            data = block.get("base64", block.get("data"))
            kind = block.get("mime_type", block.get("mimeType"))
            if isinstance(data, str) and isinstance(kind, str):
                return _image(f"data:{kind};base64,{data}")
    raise InvalidInputError(
        f"a user's message takes no block {str(block)[:200]!r}; it takes text, and image_url or "
        "image with a url or with base64 and mime_type"
    )


def _image(url: str) -> dict[str, Any]:
    found = _IMAGE.fullmatch(url)
    try:
        if found is not None and found["data"] is not None:
            b64decode(found["data"], validate=True)
    except ValueError:
        found = None
    if found is None:
        raise InvalidInputError(
            f"an image is at http(s)://, or data:image/(png|jpeg|gif|webp);base64, not {url[:60]!r}"
        )
    return {"type": "image_url", "image_url": {"url": url}}
