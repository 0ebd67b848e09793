"""``Place``: a thread as the proof sees it, with all that its rights can depend on."""

from collections.abc import Collection
from typing import NamedTuple, cast

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import ToolCall, tool_call
from langgraph.types import Overwrite

from modeshift.modes.facts import Scope
from modeshift.modes.phases import Phase
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import CHANGED, NO_FILES
from modeshift.threads.mailbox import StateValues
from modeshift.threads.state import Facts, NewTask, Parent, State, Subtask, Switch, put_aside

SCOPES: tuple[Scope, ...] = ("mode", "conversation", "workspace")


class Pending(NamedTuple):
    """A switch that was approved, or a sub-task, and has yet to be applied."""

    target: str
    is_task: bool
    approvals: str | None
    then: tuple["Pending", ...] = ()
    """The other sub-tasks of the message."""
    how: str = ""
    """As in ``Switch``: whether an edge decided it without asking, or a person did."""

    def __str__(self) -> str:
        what = f"{'a sub-task in' if self.is_task else 'the switch to'} {self.target}"
        policy = f", with approvals {self.approvals}" if self.approvals else ""
        return f"{what}{policy}{' ' * bool(self.how)}{self.how}"

    @property
    def who(self) -> str:
        """Who has allowed the switch, as in ``Move``."""
        return "edge" if self.how == "by edge" else "person"


class Task(NamedTuple):
    """The sub-task that goes on, as it began."""

    mode: str
    approvals: str
    depth: int


class Frame(NamedTuple):
    """A conversation that waits for a sub-task."""

    mode: str
    approvals: str
    task: Task | None
    then: tuple[Pending, ...]
    facts: frozenset[str] = frozenset()


class Place(NamedTuple):
    """One configuration of a thread."""

    mode: str
    phase: str
    limit: str | None
    approvals: str
    switch: Pending | None = None
    task: Task | None = None
    parents: tuple[Frame, ...] = ()
    facts: frozenset[str] = frozenset()
    """The facts that hold, of those that a condition names."""

    @property
    def depth(self) -> int:
        """How many sub-tasks deep it is."""
        return 0 if self.task is None else self.task.depth


def drop_parents(place: Place) -> Place:
    """The place without the conversations that wait."""
    if not place.parents:
        return place
    mode, phase, limit, approvals, switch, task, _, facts = place
    return Place(mode, phase, limit, approvals, switch, task, (), facts)


def read_place(state: StateValues, known: Collection[str]) -> Place:
    """The place of a thread in this state; only facts that are ``known`` count."""
    return Place(
        state["mode"],
        state["phase"],
        state.get("limit"),
        state["approvals"],
        read_switch(state.get("switch")),
        _read_task(state.get("subtask")),
        tuple(_read_parent(parent, known) for parent in state.get("parents", ())),
        read_true_facts(state.get("facts", {})).intersection(known),
    )


def read_true_facts(facts: Facts) -> frozenset[str]:
    """The names of the facts that hold, of those in the state."""
    return frozenset(name for scope in SCOPES for name in facts.get(scope, ()))


def read_switch(switch: Switch | None) -> Pending | None:
    """An approved switch, as the state has it."""
    if switch is None:
        return None
    then = tuple(filter(None, map(read_switch, switch.get("then", ()))))
    slug, how = switch["mode_slug"], switch.get("how", "")
    return Pending(slug, bool(switch.get("task")), switch["approvals"], then, how)


def _read_task(subtask: Subtask | None) -> Task | None:
    return subtask and Task(subtask["mode"], subtask["approvals"], subtask["depth"])


def _read_parent(parent: Parent, known: Collection[str]) -> Frame:
    then = tuple(filter(None, map(read_switch, parent.get("then", ()))))
    task = _read_task(parent["subtask"])
    facts = read_true_facts(parent.get("facts", {})).intersection(known)
    return Frame(parent["mode"], parent["approvals"], task, then, facts)


CALLS: list[ToolCall] = [tool_call(name="new_task", args={}, id=str(number)) for number in (0, 1)]
"""Calls of which a place knows only that there are some."""
_SAID, _ASKING = HumanMessage("go", id="said"), AIMessage("", tool_calls=CALLS, id="asking")
_DONE = AIMessage("done", id="done")


def build_state(deps: AgentDeps, place: Place) -> State:
    """The smallest state that has the place."""
    asks = place.phase in (Phase.REVIEWING, Phase.ACTING, Phase.SWITCHING)
    is_over = place.phase in (Phase.IDLE, Phase.RETURNING)
    state: JsonObject = {
        "messages": [_SAID, _ASKING] if asks else [_SAID, _DONE] if is_over else [_SAID],
        "mode": place.mode,
        "first_mode": place.mode,
        "phase": place.phase,
        "limit": place.limit,
        "approvals": place.approvals,
        "switch": place.switch and _build_switch(deps, place.switch, CALLS),
        "subtask": _build_task(place.task),
        "parents": [_build_parent(deps, frame) for frame in place.parents],
        "facts": build_facts(deps, place.facts),
        "remembered": [],
        "written": [],
    }
    return cast("State", state)


def build_facts(deps: AgentDeps, names: frozenset[str]) -> Facts:
    """The facts of these names as the state holds them."""
    true = {scope: [name for name in names if deps.facts[name].scope == scope] for scope in SCOPES}
    return cast("Facts", {**true, "tests": "-" if CHANGED in names else NO_FILES})


def _build_switch(deps: AgentDeps, pending: Pending, calls: list[ToolCall]) -> Switch:
    switch = Switch(
        mode_slug=pending.target,
        reason="-",
        call=calls[0],
        reply="-",
        approvals=pending.approvals,
        digest=deps.catalog[pending.target].digest,
        task=NewTask(message="-", todos=[]) if pending.is_task else None,
        then=[_build_switch(deps, following, calls[1:]) for following in pending.then],
    )
    return cast("Switch", {**switch, "how": pending.how}) if pending.how else switch


def _build_task(task: Task | None) -> Subtask | None:
    if task is None:
        return None
    mode, approvals, depth = task
    return Subtask(
        id=CALLS[0]["id"] or "", mode=mode, message="-", depth=depth, approvals=approvals
    )


def _build_parent(deps: AgentDeps, frame: Frame) -> Parent:
    then = [_build_switch(deps, pending, CALLS[1:]) for pending in frame.then]
    state = State(
        subtask=_build_task(frame.task),
        approvals=frame.approvals,
        messages=[_SAID, _ASKING],
        facts=build_facts(deps, frame.facts),
    )
    return put_aside(state, mode=frame.mode, call=CALLS[0], then=then, last=None, changes=0)


def merge(state: StateValues, update: StateValues) -> StateValues:
    """The state after a node's update, as far as a place depends on it."""
    parents = update.get("parents", [])
    is_whole = isinstance(parents, Overwrite)
    merged = parents.value if is_whole else [*state["parents"], *parents]
    return {**state, **update, "parents": merged}


def describe(place: Place) -> str:
    """Where a thread is, in words."""
    limit = f", limit {place.limit}" if place.limit else ""
    depth = f", {place.depth} sub-tasks deep" if place.depth else ""
    facts = f", {' and '.join(sorted(place.facts))}" if place.facts else ""
    return f"{place.mode} mode, {place.phase}, approvals {place.approvals}{limit}{depth}{facts}"


def describe_start(place: Place) -> str:
    """Where the steps to a place begin, in words."""
    is_new = place.phase == Phase.IDLE and place.task is None
    return f"a new thread in {place.mode} mode" if is_new else f"a thread in {describe(place)}"
