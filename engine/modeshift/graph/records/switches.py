"""Changes of mode: those of the past, and one that a person approved and that is due."""

from typing import Literal, NotRequired

from langchain_core.messages import ToolCall
from typing_extensions import TypedDict


class ModeChange(TypedDict):
    """The record of one change of mode; ``when`` is ISO 8601 in UTC."""

    source: str
    target: str
    reason: str
    decided_by: Literal["human", "host", "nobody"]
    """``nobody`` where the mode no longer exists, and where a sub-task has ended."""
    when: str
    written: NotRequired[list[str]]
    """Files changed in ``source``, if any were."""


class Todo(TypedDict):
    """An item of the agent's todo list, as ``update_todo_list`` writes it."""

    content: str
    status: str


class NewTask(TypedDict):
    """What a sub-task is told to do."""

    message: str
    todos: list[Todo]


class Switch(TypedDict):
    """A switch, or a sub-task, that a person approved and that has yet to be applied."""

    mode_slug: str
    reason: str
    call: ToolCall
    """The call it answers: of ``switch_mode``, or a question with a suggestion to switch."""
    reply: str
    """What the person said."""
    approvals: str | None
    """The policy to set with it, or None to leave it."""
    digest: str
    """Of the mode, as it was when the person approved."""
    task: NotRequired[NewTask | None]
    then: NotRequired["list[Switch]"]
    """The other sub-tasks of the message, which follow one after the other."""


def list_switches(switch: Switch | None) -> list[Switch]:
    """A switch, and the sub-tasks that follow it."""
    return [] if switch is None else [switch, *switch.get("then", ())]
