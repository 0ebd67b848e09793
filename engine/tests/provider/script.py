"""What the scripted provider answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import Any, Literal

import yaml
from langchain_core.messages import BaseMessage

from modeshift.messages.instructions import remove_instructions
from modeshift.testing.steady import Ids
from tests.provider.digests import tokens

__all__ = ["Ids"]
ERRORS: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "errors.yaml").read_text(encoding="utf-8")
)
"""By service and kind of failure."""
Ending = Literal["whole", "broken", "silent"]


@dataclass(frozen=True)
class Call:
    """A tool call; arguments given as text go out as they are, be they JSON or not."""

    name: str
    args: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Answer:
    """One answer of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    refusal: str | None = None
    """Its words, which Anthropic does not send."""
    is_truncated: bool = False
    """Whether the model ran out of tokens."""
    reason: str | None = None
    """Why it stopped, in the service's word, if not as the rest says."""
    ending: Ending = "whole"
    """Of the stream: ``broken`` resets the connection, ``silent`` ends it without a word."""
    events: int | None = None
    """How many events are sent before the stream ends, unless it ends whole."""
    pause: float = 0
    """Seconds between two events."""
    go_on: Semaphore | None = None
    """Acquired before the second half of the events."""


@dataclass(frozen=True)
class Failure:
    """An error instead of an answer."""

    kind: Literal[
        "key", "permission", "rate", "quota", "server", "overloaded", "context", "model", "request"
    ]
    message: str | None = None
    retry_after: str | None = None
    mid_stream: bool = False
    """Whether it comes as an event, behind the first words."""
    tokens: int = 210_111
    """Of the input, where it is longer than the window."""
    window: int = 200_000
    as_sent: tuple[int, dict[str, Any]] | None = None
    """Status and body as another server sent them; the kind says nothing then."""


@dataclass(frozen=True)
class Raw:
    """The data of a stream's events as they are: what other servers make of the format."""

    events: tuple[Any, ...]


Step = Answer | Failure | Raw


Driver = Callable[[Sequence[BaseMessage]], Step]
"""Answers by the history, without what the agent was told beside it."""


def list_said(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages for a driver."""
    return [
        message.model_copy(update={"content": remove_instructions(message.text)})
        for message in messages
        if message.type != "system"
    ]


def say(text: str) -> Answer:
    """An answer in words."""
    return Answer(text)


def call(name: str, *, text: str = "", **args: Any) -> Answer:
    """An answer that calls one tool."""
    return Answer(text, (Call(name, args),))


def tokens_of(answer: Answer) -> int:
    """What the model made."""
    return sum(map(tokens, [answer.text, answer.thinking, *(call.args for call in answer.calls)]))


def pieces(text: str, size: int = 12) -> list[str]:
    """``text`` in pieces, as a stream brings it."""
    return [text[start : start + size] for start in range(0, len(text), size)]
