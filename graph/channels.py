"""Channels that refuse what does not fit, before anything is saved."""

import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langgraph.channels import EphemeralValue, LastValue
from typing_extensions import override

from graph.history import normalised
from modes.catalog import Catalog
from modes.errors import InvalidInputError
from modes.machine import Phase
from modes.verdict import Approvals
from tools.arguments import misfit


class Checked(LastValue[Any]):
    """The last value that passed ``check``; a value that does not raises, and nothing is saved."""

    def __init__(self, typ: Any, check: Callable[[Any], Any], key: str = "") -> None:
        super().__init__(typ, key)
        self.check = check

    @override
    def copy(self) -> "Checked":
        new = Checked(self.typ, self.check, self.key)
        new.value = self.value
        return new

    @override
    def from_checkpoint(self, checkpoint: Any) -> "Checked":
        new = Checked(self.typ, self.check, self.key)
        new.value = super().from_checkpoint(checkpoint).value
        return new

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.check(value) for value in values])


class CheckedInput(EphemeralValue[Any]):
    """A run's input, checked before the run's first checkpoint.

    A check in a node would come too late: by then the input has replaced the
    state, and an interrupt that was waiting is gone.
    """

    def __init__(self, typ: Any, check: Callable[[Any], Any]) -> None:
        super().__init__(typ)
        self.check = check

    @override
    def copy(self) -> "CheckedInput":
        new = CheckedInput(self.typ, self.check)
        new.key, new.value = self.key, self.value
        return new

    @override
    def from_checkpoint(self, checkpoint: Any) -> "CheckedInput":
        new = CheckedInput(self.typ, self.check)
        new.key, new.value = self.key, super().from_checkpoint(checkpoint).value
        return new

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.check(value) for value in values])


def mode_check(catalog: Catalog) -> Callable[[Any], str]:
    """A check that raises ``UnknownModeError`` for what is not in the catalog."""

    def check(slug: Any) -> str:
        return catalog[slug].slug

    return check


def approvals_check(value: Any) -> str:
    """Raises ``InvalidInputError`` for what is no policy."""
    try:
        return Approvals(value).value
    except ValueError:
        policies = ", ".join(Approvals)
        raise InvalidInputError(
            f"unknown approvals {value!r}; the policies are: {policies}"
        ) from None


def phase_check(value: Any) -> str:
    """Raises ``InvalidInputError`` for what is no phase."""
    try:
        return Phase(value).value
    except ValueError:
        raise InvalidInputError(f"unknown phase {value!r}") from None


def input_check(catalog: Catalog) -> Callable[[Any], dict[str, Any]]:
    """A check of a run's whole input."""
    checks: dict[str, Callable[[Any], Any]] = {
        "messages": _messages_check,
        "mode": mode_check(catalog),
        "approvals": approvals_check,
        "forget": _ids_check,
    }

    def check(given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise InvalidInputError(f"a run's input is a mapping, not {given!r}")
        if unknown := sorted(given.keys() - checks.keys(), key=str):
            raise InvalidInputError(
                f"unknown key {unknown[0]!r} in a run's input; the keys are: {', '.join(checks)}"
            )
        return {key: checks[key](value) for key, value in given.items() if value is not None}

    return check


def _ids_check(given: Any) -> list[str]:
    ids = [given] if isinstance(given, str) else given
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InvalidInputError(f"forget {given!r} is no list of ids in 'remembered', nor 'all'")
    return ids


def _messages_check(given: Any) -> list[AnyMessage]:
    """User and assistant messages. Results of tools are dropped: only a tool has results.

    A chat UI that lets the user type over a waiting approval sends a made-up
    result along; ``intake`` puts the true one in its place.
    """
    try:
        messages = convert_to_messages(given if isinstance(given, list) else [given])
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInputError(f"messages {given!r} are not messages: {error}") from error
    kept: list[AnyMessage] = []
    for message in messages:
        if found := misfit(message.content):
            raise InvalidInputError(f"the message {message.content!r} holds {found}")
        if isinstance(message, HumanMessage):
            kept.append(_user_message(message))
        elif isinstance(message, AIMessage):
            kept.append(_assistant_message(message))
        elif not isinstance(message, ToolMessage):
            raise InvalidInputError(
                f"a run's input takes no {message.type!r} message; send role 'user'"
            )
    return kept


def _assistant_message(message: AIMessage) -> AIMessage:
    """Its words and its calls: thoughts, say, a provider takes from itself alone.

    The calls get new ids: those that a client names may be in the thread already.
    """
    calls = [{**call, "id": None} for call in message.tool_calls]
    unread = [{**call, "id": None} for call in message.invalid_tool_calls]
    return normalised(
        AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread, id=message.id)
    )


_IMAGE = re.compile(r"https?://\S+|data:image/(?:png|jpeg|gif|webp);base64,(?P<data>.+)")


def _user_message(message: HumanMessage) -> HumanMessage:
    """What a provider refuses would stay in the history, and be refused for ever."""
    content = message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    taken: list[str | dict[Any, Any]]
    taken = [one for block in blocks if (one := _block(block)) is not None]
    if not taken:
        raise InvalidInputError("the user's message is empty")
    # Built anew: a provider refuses a field that it does not know.
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
