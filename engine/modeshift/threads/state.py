"""The state of a thread, what its keys hold, and what a run's input may contain.

Plain data, so that a checkpoint outlives a change of code.
"""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, cast, get_type_hints

from langchain_core.messages import AnyMessage, ToolCall
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from modeshift.messages.channels import Messages, append, build_growing_list
from modeshift.messages.instructions import Instruction
from modeshift.models.usage import Fill, Usage, add_usage
from modeshift.modes.edges.edges import Context
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.mailbox import Revision, StateValues
from modeshift.workarounds.langgraph import messages_delta_reducer


class Remembered(TypedDict):
    """A person's "always allow this", for one tool and pattern in one mode of the thread."""

    id: str
    mode: str
    tool: str
    pattern: str
    exact: bool
    """Whether ``pattern`` is one command or file, to be taken literally."""
    digest: str
    """The digest of the mode and the workspace it was given in; it applies in no other."""
    when: str


class Asked(TypedDict):
    """What a person was asked about; an answer to anything else is void."""

    digest: str
    """See ``judging.digest_question``."""
    contents: dict[str, str]
    """Digests of the files that the calls would edit, by real path."""
    approvals: NotRequired[str]
    """The policy under which it was asked; the question stays while another one is set."""
    failing: NotRequired[dict[str, str]]
    """Why calls beside it were denied that could only have failed, by id."""


class Approved(TypedDict):
    """What a person approved: one call with these arguments, and no other."""

    args: JsonObject
    edited: bool
    digest: str
    """See ``Judged.digest``."""
    contents: NotRequired[dict[str, str]]
    """Digests of the files that it edits, by real path."""


class Planned(TypedDict):
    """A call that is to run, or to be refused for the reason in ``denied``."""

    call: ToolCall
    message: NotRequired[str]
    """The id of the message that made it."""
    approved: Approved | None
    denied: str | None
    """Why it is refused, as it was judged when the model made it."""
    journal: NotRequired[str]
    """``Journal.mark`` of the one that knows whether it has begun."""
    key: NotRequired[str]
    """For a call that changes something: ``Judged.digest`` with the message, without the thread."""


class ModeChange(TypedDict):
    """The record of one change of mode; ``when`` is ISO 8601 in UTC."""

    source: str
    target: str
    reason: str
    decided_by: Literal["human", "host", "nobody"]
    """``nobody`` where the mode no longer exists, where a sub-task has ended, and by edge."""
    when: str
    written: NotRequired[list[str]]
    """Files changed in ``source``, if any were."""
    how: NotRequired[Literal["by hand", "by edge"]]
    """``by hand``: a host or a person chose the mode, over the edges. ``by edge``: nobody was
    asked, as the edge says ``ask: never``."""


class Facts(TypedDict, total=False):
    """The facts that are true, by scope; code alone computes them, from what happened."""

    mode: list[str]
    conversation: list[str]
    workspace: list[str]
    tests: str
    """A digest of the owner's test files when the thread began; empty where that failed."""


class Todo(TypedDict):
    """An item of the agent's todo list, as ``update_todo_list`` writes it."""

    content: str
    status: str


class NewTask(TypedDict):
    """What a sub-task is told to do."""

    message: str
    todos: list[Todo]


class ApprovedPlan(TypedDict):
    """A plan that a person approved with a switch; it limits what is written until the next."""

    path: str
    digest: str
    text: str
    paths: list[str]
    """The files that may be changed, and folders, which end in a slash; empty for no limit."""


class Switch(TypedDict):
    """A switch, or a sub-task, that a person approved and that has yet to be applied."""

    mode_slug: str
    reason: str
    call: ToolCall
    """The call it answers: of ``switch_mode``, or a question with a suggestion to switch."""
    reply: str
    """What the person said."""
    approvals: str | None
    """The policy that the person chose with it; None to leave it, or if the host set one since."""
    digest: str
    """The digest of the mode as it was when the person approved."""
    how: NotRequired[Literal["by hand", "by edge"]]
    """See ``ModeChange``."""
    approved_plan: NotRequired[ApprovedPlan]
    """The plan that the person approved with it."""
    context: NotRequired[Context]
    """``plan``: the model is sent the user's words and all from the switch on, with the plan."""
    task: NotRequired[NewTask | None]
    then: NotRequired["list[Switch]"]
    """The other sub-tasks of the message, which follow one after the other."""


def list_switches(switch: Switch | None) -> list[Switch]:
    """A switch, and the sub-tasks that follow it."""
    return [] if switch is None else [switch, *switch.get("then", ())]


def drop_approvals(switch: Switch) -> Switch:
    """The switch without the approvals chosen with it: the host has set some since."""
    then = [drop_approvals(following) for following in switch.get("then", ())]
    return {**switch, "approvals": None, "then": then}


class Subtask(TypedDict):
    """The sub-task that goes on; its conversation is what the state's other keys hold."""

    id: str
    """The id of the call of ``new_task``."""
    mode: str
    message: str
    depth: int
    """1 for one that no other sub-task began."""
    approvals: str
    """The policy that it began with."""
    failure: NotRequired[str]
    """Why it is to end although it is not done."""


class PutAside(TypedDict):
    """The keys that each conversation of a thread has for itself."""

    subtask: Subtask | None
    """Where the conversation is itself a sub-task's."""
    mode: str
    approvals: str
    messages: list[AnyMessage]
    instructions: list[Instruction]
    todos: list[Todo]
    remembered: list[Remembered]
    written: list[str]
    facts: NotRequired[Facts]
    approved_plan: NotRequired[ApprovedPlan | None]
    fresh_from: NotRequired[str | None]
    host_revision: NotRequired[Revision]
    """What of the host's settings had been taken in then."""


class Parent(PutAside):
    """What a conversation was when its sub-task began, and is again when that has ended."""

    call: ToolCall
    """The call of ``new_task``, which has no result yet."""
    then: NotRequired[list[Switch]]
    """The sub-tasks that begin after it."""
    last: Fill | None
    changes: int
    """How many changes of mode there were, that to the sub-task's among them."""


def _pick(values: StateValues) -> dict[str, Any]:
    empty: dict[str, object] = dict.fromkeys(("subtask", "approved_plan", "fresh_from"))
    empty |= {"facts": {}, "host_revision": {}}
    return {key: values.get(key, empty.get(key, [])) for key in PutAside.__annotations__}


def put_aside(state: "State", *, mode: str, **more: object) -> Parent:
    """The conversation, whole, in ``mode``; ``more`` is what it goes on with later."""
    return cast("Parent", {**_pick(state), "mode": mode, **more})


def take_back(parent: Parent) -> "Update":
    """The conversation as it was; what the host has set since is not taken back."""
    keys = _pick(parent)
    del keys["host_revision"]
    return cast("Update", {**keys, "instructions": Overwrite(parent["instructions"])})


class EndedSubtask(TypedDict):
    """A sub-task of the past, with its whole conversation."""

    id: str
    mode: str
    message: str
    status: Literal["completed", "failed"]
    result: str
    files: list[str]
    """The files that it wrote."""
    rejected: list[str]
    """The calls that a person rejected, and what they said."""
    messages: list[AnyMessage]


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


class Replaced(TypedDict, total=False):
    """The keys of a thread's state of which a new value takes the place of the old one."""

    todos: list[Todo]
    notices: list[str]
    """What a person should know, as of this turn."""
    workspace: str
    """The name of the folder that the thread works in, below ``WORKSPACES``; nobody changes it."""
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
    switch: Switch | None
    """The approved switch, or sub-task, that comes next."""
    refused: list[str]
    """Modes to which a person refused to switch, in this turn."""
    switched: int
    """How often the mode was changed because the model asked for it, in this turn."""
    written: list[str]
    """Files changed since the thread came to this mode, in order; the next mode is told."""
    approved_plan: ApprovedPlan | None
    """What limits the edits of this mode; a person alone approves it, or leaves the mode."""
    fresh_from: str | None
    """The id of the message from which on the model is sent the history; None for all of it."""
    facts: Facts
    """What conditions of edges are about; nobody writes it from outside."""
    host_revision: Revision
    """What the thread has taken in of what the host has set; see ``Mailbox``."""
    undo_from: str
    """Where the undo log stood when the turn began; empty if nothing was kept. See ``undo``."""

    # Calls and approvals.
    approvals: str
    """``manual`` or ``auto``."""
    due_calls: list[list[Planned]]
    """The calls that are due, in batches; the first is the one under way."""
    asked: Asked | None
    """The question that waits for a person."""
    remembered: list[Remembered]
    forget: list[str]
    """As in ``Input``; empty once it is done."""

    # Sub-tasks.
    subtask: Subtask | None
    end_subtask: bool
    """As in ``Input``; False once it is done."""


class State(Replaced, total=False):
    """A thread's state; plain data, so that a checkpoint outlives a change of code."""

    messages: Annotated[list[AnyMessage], Messages(messages_delta_reducer)]
    instructions: Annotated[list[Instruction], build_growing_list()]
    """What the model was told beside the messages."""
    usage: Annotated[Usage, add_usage]
    """Tokens, in this turn and in all."""
    mode_changes: Annotated[list[ModeChange], append]
    parents: Annotated[list[Parent], build_growing_list()]
    """The conversations that wait for the sub-task, the one that began it last."""
    subtasks: Annotated[list[EndedSubtask], build_growing_list()]


class Update(Replaced, total=False):
    """What a node writes; ``Overwrite`` replaces a list that else grows."""

    messages: Sequence[AnyMessage] | Overwrite
    instructions: Sequence[Instruction] | Overwrite
    usage: Usage | Overwrite
    mode_changes: Sequence[ModeChange] | Overwrite
    parents: Sequence[Parent] | Overwrite
    subtasks: Sequence[EndedSubtask] | Overwrite


class RoutingState(TypedDict):
    """The part of the state that decides what comes next; without the history, which is long."""

    mode: str
    limit: NotRequired[str | None]
    host_revision: NotRequired[Revision]
    phase: str
    approvals: str
    remembered: list[Remembered]
    written: list[str]
    switched: NotRequired[int]
    facts: NotRequired[Facts]
    approved_plan: NotRequired[ApprovedPlan | None]
    due_calls: list[list[Planned]]
    switch: Switch | None
    subtask: NotRequired[Subtask | None]


class ActTask(RoutingState):
    """What one ``act`` task gets. ``due_calls`` has the batches after its own."""

    planned: Planned
    is_last: bool
    """Whether this task moves the machine on for its batch."""


def get_depth(state: State | RoutingState) -> int:
    """How many sub-tasks deep a thread is; 0 is in none."""
    subtask = state.get("subtask")
    return subtask["depth"] if subtask is not None else 0


@cache
def list_own_keys(state: type) -> frozenset[str]:
    """The keys that a clone's state has beside the engine's; its nodes and hosts may write them."""
    return frozenset(get_type_hints(state).keys() - get_type_hints(State).keys())


@cache
def build_input_type(state: type) -> Any:
    """``Input``, with the clone's own keys, which a host may set, too."""
    hints = get_type_hints(state, include_extras=True)
    own = {key: hints[key] for key in sorted(list_own_keys(state))}
    both = {**get_type_hints(Input, include_extras=True), **own}
    return TypedDict("Input", both, total=False) if own else Input  # type: ignore[operator]
