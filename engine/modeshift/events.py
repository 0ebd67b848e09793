"""``RunEvent``: what happens in a run of a thread, while it goes on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage, convert_to_messages
from langgraph.types import Interrupt

from modeshift.threads.mailbox import StateValues

COMPACTING = "compact_history"
REPAIRING = ("intake", "review", "switch_mode", "end_subtask", COMPACTING)
STOPPED = "Stopped."
STOPPED_RUNNING = "Stopped while it ran: it may have taken effect, in whole or in part."


@dataclass(frozen=True)
class Chunk:
    """A piece of an answer, while the model writes it."""

    message: AIMessageChunk


@dataclass(frozen=True)
class Printed:
    """A piece of a command's output, while it runs."""

    call_id: str
    text: str


@dataclass(frozen=True)
class Begun:
    """A node is the next to run; it waits until the event after this one is asked for."""

    node: str
    input: object


@dataclass(frozen=True)
class Wrote:
    """A node has ended; ``update`` is what it wrote into the thread's state."""

    node: str
    update: StateValues

    @property
    def messages(self) -> list[AnyMessage]:
        """The messages of the update; after a summary, all that the thread has."""
        given = self.update.get("messages") or []
        given = getattr(given, "value", given)  # an ``Overwrite``, or as a server sends one
        return read_messages(given["value"] if isinstance(given, Mapping) else given)

    @property
    def is_repair(self) -> bool:
        """Whether the node only rewrites the history, so that its answers are not new."""
        return self.node in REPAIRING


RunEvent = Chunk | Printed | Begun | Wrote | Interrupt
"""The ``Interrupt`` is a question; the run ends with it."""


def read_events(kind: str, part: Any) -> Iterator[RunEvent]:
    """The events in a part of LangGraph's stream."""
    match kind, part:
        case "messages", (given, _):
            (message,) = read_messages([given])
            if isinstance(message, AIMessageChunk):  # a whole one comes with the node's update
                yield Chunk(message)
        case "custom", {"type": "tool_output", "tool_call_id": str(id), "text": str(text)}:
            yield Printed(id, text)
        case "tasks", {"name": str(node), "input": input}:
            yield Begun(node, input)
        case "updates", {"__interrupt__": questions}:
            for each in questions:
                yield each if isinstance(each, Interrupt) else Interrupt(**each)
        case "updates", dict():
            for node, update in part.items():
                yield Wrote(node, update if isinstance(update, Mapping) else {})


def read_messages(given: Sequence[object]) -> list[AnyMessage]:
    """Read messages: the agent's objects, or JSON as a server sends it."""
    return [one if isinstance(one, BaseMessage) else _read_message(one) for one in given]  # type: ignore[misc]


def _read_message(value: Any) -> AnyMessage:
    if value.get("type") == "AIMessageChunk":
        return AIMessageChunk.model_validate(value)
    return convert_to_messages([value])[0]  # type: ignore[return-value]  # of a thread's kinds
