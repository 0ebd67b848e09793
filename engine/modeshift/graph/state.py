"""The state of a thread, and what a run's input may contain."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, get_type_hints

from langchain_core.messages import AnyMessage
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from modeshift.graph.messages.channels import Messages, append, build_growing_list
from modeshift.graph.messages.instructions import Instruction
from modeshift.graph.models.usage import Usage, add_usage
from modeshift.graph.records.approvals import Asked, Planned, Remembered
from modeshift.graph.records.subtasks import EndedSubtask, Parent, Subtask
from modeshift.graph.records.switches import ModeChange, Switch, Todo


class Input(TypedDict, total=False):
    """A run's input. All but ``messages`` is for the host to set, never for the model."""

    messages: list[AnyMessage]
    mode: str
    limit: str
    """See ``State``; ``update_state`` lifts it."""
    approvals: Literal["manual", "auto"]
    forget: list[str]
    """Ids in ``remembered``, or ``all``."""
    compact: bool
    """Whether to replace the history by a summary, as soon as no question is open."""
    end_subtask: bool
    """Whether to stop the sub-task that goes on; the conversation that began it goes on."""


class State(TypedDict, total=False):
    """A thread's state; plain data, so that a checkpoint outlives a change of code."""

    messages: Annotated[list[AnyMessage], Messages(_messages_delta_reducer)]
    instructions: Annotated[list[Instruction], build_growing_list()]
    """What the model was told beside the messages."""
    todos: list[Todo]
    notices: list[str]
    """What a person should know, as of this turn."""
    usage: Annotated[Usage, add_usage]
    """Tokens, in this turn and in all."""
    compact: bool
    """Whether the history is to be summarized as soon as no question is open."""
    compact_from: int | None
    """How many messages there must be before they are summarized again; None: not in this turn."""

    # The mode.
    mode: str
    phase: str
    """See ``Phase``: with the mode it says which node is next."""
    limit: str | None
    """The mode that the thread's rights never exceed; the host alone sets it."""
    first_mode: str
    """The mode in which the thread started; ``mode_changes`` continue from it."""
    mode_changes: Annotated[list[ModeChange], append]
    switch: Switch | None
    """The approved switch, or sub-task, that comes next."""
    refused: list[str]
    """Modes to which a person refused to switch, in this turn."""
    written: list[str]
    """Files changed since the thread came to this mode; the next mode is told."""
    host_revision: int
    """Of the host's newest setting that the thread has taken in; see ``Mailbox``."""

    # Calls and approvals.
    approvals: str
    """``manual`` or ``auto``."""
    plan: list[list[Planned]]
    """The calls that are due, in batches; the first is the one under way."""
    asked: Asked | None
    """The question that waits for a person."""
    remembered: list[Remembered]
    forget: list[str]
    """As in ``Input``; empty once it is done."""

    # Sub-tasks.
    subtask: Subtask | None
    parents: Annotated[list[Parent], build_growing_list()]
    """The conversations that wait for the sub-task, the one that began it last."""
    subtasks: Annotated[list[EndedSubtask], build_growing_list()]
    end_subtask: bool
    """As in ``Input``; False once it is done."""


class Update(TypedDict, total=False):
    """What a node writes: the keys of ``State``; ``Overwrite`` replaces a list that else grows."""

    messages: Sequence[AnyMessage] | Overwrite
    instructions: Sequence[Instruction] | Overwrite
    todos: list[Todo]
    notices: list[str]
    usage: Usage | Overwrite
    compact: bool
    compact_from: int | None
    mode: str
    phase: str
    limit: str | None
    first_mode: str
    mode_changes: Sequence[ModeChange] | Overwrite
    switch: Switch | None
    refused: list[str]
    written: list[str]
    host_revision: int
    approvals: str
    plan: list[list[Planned]]
    asked: Asked | None
    remembered: list[Remembered]
    forget: list[str]
    subtask: Subtask | None
    parents: Sequence[Parent] | Overwrite
    subtasks: Sequence[EndedSubtask] | Overwrite
    end_subtask: bool


class RoutingState(TypedDict):
    """The part of the state that decides what comes next; without the history, which is long."""

    mode: str
    limit: NotRequired[str | None]
    host_revision: NotRequired[int]
    phase: str
    approvals: str
    remembered: list[Remembered]
    written: list[str]
    plan: list[list[Planned]]
    switch: Switch | None
    subtask: NotRequired[Subtask | None]


class ActTask(RoutingState):
    """What one ``act`` task gets. ``plan`` has the batches after its own."""

    planned: Planned
    is_last: bool
    """Whether this task moves the machine on for its batch."""


def get_depth(state: State | RoutingState) -> int:
    """How many sub-tasks deep a thread is; 0 is in none."""
    subtask = state.get("subtask")
    return subtask["depth"] if subtask is not None else 0


@cache
def list_own_keys(state: type) -> frozenset[str]:
    """The keys that a clone's state has beside the engine's."""
    return frozenset(get_type_hints(state).keys() - get_type_hints(State).keys())


@cache
def build_input_type(state: type) -> Any:
    """``Input``, with the clone's own keys, which a host may set, too."""
    hints = get_type_hints(state, include_extras=True)
    own = {key: hints[key] for key in sorted(list_own_keys(state))}
    both = {**get_type_hints(Input, include_extras=True), **own}
    return TypedDict("Input", both, total=False) if own else Input  # type: ignore[operator]
