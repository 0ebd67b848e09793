"""Channels that refuse what does not fit, before anything is saved."""

import re
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
    """Its words and its calls: thoughts, say, a provider takes from itself alone."""
    calls, unread = message.tool_calls, message.invalid_tool_calls
    return normalised(
        AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread, id=message.id)
    )


_USER_BLOCKS = ("text", "image_url", "image", "file")
_IMAGE_URL = re.compile(r"https?://|data:image/(?:png|jpeg|gif|webp);base64,")


def _user_message(message: HumanMessage) -> HumanMessage:
    """What a provider refuses would stay in the history, and be refused for ever."""
    content = message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not any(_says_something(block) for block in blocks):
        raise InvalidInputError("the user's message is empty")
    return HumanMessage(content, id=message.id)


def _says_something(block: str | dict[str, Any]) -> bool:
    """Whether it is more than spaces; raises ``InvalidInputError`` for what no provider takes."""
    if isinstance(block, str):
        return bool(block.strip())
    match block:
        case {"type": "text", "text": str(text)}:
            return bool(text.strip())
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            if not _IMAGE_URL.match(url):
                raise InvalidInputError(
                    f"an image is at http(s)://, or data:image/(png|jpeg|gif|webp);base64, "
                    f"not {url[:60]!r}"
                )
            return True
        case {"type": "image" | "file", **rest} if rest.keys() & _SOURCES:
            return True
    raise InvalidInputError(
        f"a user's message takes no block {str(block)[:200]!r}; "
        f"the types are: {', '.join(_USER_BLOCKS)}, each with what it shows"
    )


_SOURCES = frozenset({"base64", "data", "url", "file_id", "source", "file"})
