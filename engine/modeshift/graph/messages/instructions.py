"""What the model is told beside the conversation: the words of its mode, and which tools it has.

An instruction stands behind the message that came last when the model was asked, and stays there:
what was sent once is sent again. How it is sent depends on what the model takes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from typing_extensions import TypedDict

_TAG = "system-message"
_TAGGED = re.compile(rf"\n\n<{_TAG}>\n.*?\n</{_TAG}>", re.DOTALL)


class Instruction(TypedDict):
    """What the model was told at one point of a thread, and what it knows since then."""

    after: str
    """The id of the message that it stands behind."""
    text: str
    mode: str
    tools: list[str]
    """The names of the mode's tools."""
    words: str
    """A digest of the mode's words."""
    environment: str
    """As it was when it was last told."""


def list_in_place(
    messages: Sequence[AnyMessage], instructions: Sequence[Instruction]
) -> list[Instruction]:
    """The instructions whose message is still in the history."""
    ids = set(map(attrgetter("id"), messages))
    return [one for one in instructions if one["after"] in ids]


def keep_first(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The thread's first one, in no place of the history: its tools are shown in every request."""
    return [{**one, "after": ""} for one in instructions[:1]]


def insert_instructions(
    messages: Sequence[AnyMessage],
    instructions: Sequence[Instruction],
    build: Callable[[Instruction, Instruction], SystemMessage],
) -> Iterator[AnyMessage]:
    """The history with each instruction as a system message of its own.

    ``build`` makes it, given also the instruction before, or the first itself. A provider accepts
    such a message behind the user's words or a tool's result, before an answer or at the end.
    Where somebody has edited the history, it moves on to the next such place.
    """
    waiting: list[Instruction] = []
    last = next(iter(instructions), None)
    placed = _by_message(instructions)
    for index, message in enumerate(messages):
        yield message
        waiting += placed.get(message.id, ())
        if not waiting or isinstance(message, AIMessage):
            continue
        if index + 1 == len(messages) or _is_answer(messages[index + 1]):
            for one in waiting:
                yield build(one, last or one)
                last = one
            waiting = []


def _is_answer(message: AnyMessage) -> bool:
    """Whether it is one that is sent: Anthropic's client leaves an empty one out."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.text.strip())


def append_instructions(
    messages: Sequence[AnyMessage], instructions: Sequence[Instruction]
) -> list[AnyMessage]:
    """The history with each instruction at the end of the message that it stands behind.

    For servers that take no system message but the first.
    """
    placed = _by_message(instructions)
    return [
        _append(message, placed[message.id]) if message.id in placed else message
        for message in messages
    ]


def remove_instructions(text: str) -> str:
    """A message's text without what ``append_instructions`` put there."""
    return _TAGGED.sub("", text)


def _by_message(instructions: Sequence[Instruction]) -> dict[str | None, list[Instruction]]:
    placed: dict[str | None, list[Instruction]] = {}
    for one in instructions:
        placed.setdefault(one["after"], []).append(one)
    return placed


def _append(message: AnyMessage, instructions: Sequence[Instruction]) -> AnyMessage:
    added = "".join(f"\n\n<{_TAG}>\n{one['text']}\n</{_TAG}>" for one in instructions)
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": content + added})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": added}]})
