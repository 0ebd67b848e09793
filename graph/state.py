"""The state of a thread, and what a run's input may hold.

The only module that names ``DeltaChannel``, which is beta: ``add_messages`` would
write the whole history at every step.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, Self

from langchain_core.messages import AnyMessage, BaseMessage, ToolCall
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import PendingWrite
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Overwrite
from typing_extensions import TypedDict, override

from graph.messages.from_client import is_message


class Input(TypedDict, total=False):
    """A run's input. All but ``messages`` is the host's to say, never the model's."""

    messages: list[AnyMessage]
    mode: str
    approvals: Literal["manual", "auto"]
    forget: list[str]
    """Ids in ``remembered``, or ``all``."""


class Remembered(TypedDict):
    """A person's "always allow this", for one tool and pattern in one mode of the thread."""

    id: str
    mode: str
    tool: str
    pattern: str
    exact: bool
    """Whether only the like of one call is meant, and ``pattern`` is no pattern."""
    digest: str
    """Of the mode and the workspace that it was given in: in another it does not hold."""
    when: str


class Todo(TypedDict):
    """An item of the agent's todo list, as ``update_todo_list`` writes it."""

    content: str
    status: str


class ModeChange(TypedDict):
    """The record of one change of mode; ``when`` is ISO 8601 in UTC."""

    source: str
    target: str
    reason: str
    decided_by: Literal["human", "host", "nobody"]
    """``nobody`` where the mode is no more."""
    when: str


class Switch(TypedDict):
    """A switch that a person approved and that has yet to be applied."""

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


class Approved(TypedDict):
    """What a person approved for one call: these arguments, and no others."""

    args: dict[str, Any]
    edited: bool
    digest: str
    """Of the thread, the tool, the arguments with their paths resolved, mode and workspace."""
    files: NotRequired[list[str]]
    """The files that it edits, by their real paths; none for another tool."""
    content: NotRequired[str]
    """The digest of what was in them."""


class Planned(TypedDict):
    """A call that is to run, or to be answered with a refusal."""

    call: ToolCall
    message: NotRequired[str]
    """The id of the message that made it."""
    approved: Approved | None
    denied: str | None
    """Why it is refused, judged in the context in which it was written."""
    process_id: NotRequired[str]
    """Of the process that planned it; see ``graph.started_calls``."""


class Messages(DeltaChannel[list[AnyMessage]]):
    """The history, without what is no message.

    LangGraph has saved what it then cannot read: a thread with such a write could never be read
    again. None gets in any more (``graph.state_checks``); one that has got in is passed over.
    """

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update([_messages(value) for value in values])

    @override
    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        super().replay_writes([(task, key, _messages(value)) for task, key, value in writes])

    @override
    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new.value = _messages(new.value)
        return new


def _messages(given: Any) -> Any:
    match given:
        case Overwrite(value=value) | {"__overwrite__": value}:
            return Overwrite(_messages(value if isinstance(value, list) else []))
        case list() if all(isinstance(one, BaseMessage) for one in given):
            return given
        case list():
            return [one for one in given if is_message(one)]
        case _:
            return given if is_message(given) else []


def appended(records: Any, more: Any) -> list[Any]:
    """Both lists in one; what is none is passed over, as by ``Messages``."""
    return [one for part in (records, more) if isinstance(part, list) for one in part]


class State(TypedDict, total=False):
    """A thread's state; plain data, so that a checkpoint outlives a change of code."""

    messages: Annotated[list[AnyMessage], Messages(_messages_delta_reducer)]
    mode: str
    phase: str
    approvals: str
    todos: list[Todo]
    first_mode: str
    """The mode in which the thread started; ``mode_changes`` go on from it."""
    mode_changes: Annotated[list[ModeChange], appended]
    plan: list[list[Planned]]
    """The calls that are due, in batches; the first is the one under way."""
    switch: Switch | None
    refused: list[str]
    """Modes to which a person refused to switch, in this turn."""
    asked_under: str
    """The digest (``digest_question``) of the calls that wait for a person."""
    asked_of: dict[str, str]
    """The digests of the files that they would change."""
    remembered: list[Remembered]
    forget: list[str]
    written: list[str]
    """Files changed in this mode since the thread came to it; the next mode is told."""
    notices: list[str]
    """What a person should know about the modes, as of the turn's start."""


TAKEN_NAMES = frozenset({*State.__annotations__, "intake"})
"""What no node may be called, for LangGraph: the names of the state, and of another node."""


class ActTask(TypedDict):
    """What one ``act`` task gets: a call, the context it runs in, and what comes after."""

    planned: Planned
    mode: str
    approvals: str
    remembered: list[Remembered]
    written: list[str]
    is_lead: bool
    """Whether this task moves the machine on for its batch."""
    rest: list[list[Planned]]
    """The batches after this one."""
    switch: Switch | None
    """The approved switch that follows the last batch."""
