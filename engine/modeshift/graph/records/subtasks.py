"""The sub-task that goes on, the conversations that wait for it, and those that have ended."""

from typing import Literal, NotRequired

from langchain_core.messages import AnyMessage, ToolCall
from typing_extensions import TypedDict

from modeshift.graph.messages.instructions import Instruction
from modeshift.graph.models.usage import Fill
from modeshift.graph.records.approvals import Remembered
from modeshift.graph.records.switches import Switch, Todo


class Subtask(TypedDict):
    """The sub-task that goes on; its conversation is what the state's other keys hold."""

    id: str
    """Of the call of ``new_task``."""
    mode: str
    message: str
    depth: int
    """1 for one that no other sub-task began."""
    approvals: str
    """The policy that it began with."""
    failure: NotRequired[str]
    """Why it is to end although it is not done."""


class Parent(TypedDict):
    """What a conversation was when its sub-task began, and is again when that has ended."""

    call: ToolCall
    """The call of ``new_task``, which has no result yet."""
    then: NotRequired[list[Switch]]
    """The sub-tasks that begin after it."""
    subtask: Subtask | None
    """Where the conversation is itself a sub-task's."""
    mode: str
    approvals: str
    messages: list[AnyMessage]
    instructions: list[Instruction]
    todos: list[Todo]
    remembered: list[Remembered]
    written: list[str]
    last: Fill | None
    changes: int
    """How many changes of mode there were, that to the sub-task's among them."""
    host_revision: NotRequired[int]
    """Of the host's newest setting then."""


class EndedSubtask(TypedDict):
    """A sub-task of the past, with its whole conversation."""

    id: str
    mode: str
    message: str
    status: Literal["completed", "failed"]
    result: str
    files: list[str]
    """Those it wrote."""
    rejected: list[str]
    """The calls that a person rejected, and what they said."""
    messages: list[AnyMessage]
