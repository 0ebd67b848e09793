"""``Nodes``: runs the engine's own steps on places, so that no node is written a second time."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, Op, Result
from typing_extensions import override

from modeshift.calls.turn_end import move_on
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import ANY, SwitchEdge
from modeshift.modes.mode import Mode
from modeshift.proof.places import Frame, Pending, Place, Task, build_state, merge, read_place
from modeshift.threads.deps import AgentDeps, StartedCalls
from modeshift.threads.state import ActTask, Update
from modeshift.turns.start import find_start
from modeshift.turns.step import Step, run_step

_LIMIT = "some-limit"
_MORE = HumanMessage("go on", id="more")
_CONFIG: RunnableConfig = {"configurable": {"thread_id": ""}}


async def _intake(step: Step) -> Update:
    return step.keep_waiting() if step.is_waiting else step.begin_turn()


async def _review(step: Step) -> Update:
    """Withdraw the question, which a place does not know: the mode of the calls has changed."""
    await step.open_question()
    return step.withdraw_question()


async def _switch_mode(step: Step) -> Update:
    switch = step.approved_switch()
    if switch is None:
        return step.drop_switch()
    return step.begin_subtask(switch) if switch.get("task") else step.enter(switch)


NODES: dict[str, Callable[[Step], Awaitable[Update]]] = {
    "intake": _intake,
    "review": _review,
    "switch_mode": _switch_mode,
    "end_subtask": Step.end_subtask,
}


class Outside(NamedTuple):
    """What happens to a thread from outside, at the node that runs."""

    news: str = ""
    """The setting of the host that the thread does not have yet, if any."""
    value: str | None = None
    before: str | None = None
    """The mode that the thread was in before the host wrote another one into its state."""
    is_said: bool = False
    """Whether a person says something."""
    is_stopped: bool = False
    """Whether a person stops the sub-task."""
    is_void: bool = False
    """Whether the approved switch is not as it was approved, or beyond the limit."""
    wants_summary: bool = False
    has_calls: bool = False
    """Whether ``act`` has calls left."""
    is_done: bool = False
    """Whether the model has said in ``act`` that it is done."""


class _Host(BaseStore):
    news: Mapping[str, object] = {}  # set for each step

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._get(op.key) if isinstance(op, GetOp) else None for op in ops]

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError("a step of the proof reads it in a coroutine")

    def _get(self, name: str) -> Item | None:
        if name not in self.news:
            return None
        value = {"value": self.news[name], "id": "set"}
        now = datetime.now(UTC)
        return Item(value=value, key=name, namespace=(), created_at=now, updated_at=now)


class Nodes:
    """The engine's nodes. They cannot tell one mode from another, only whether two are the same.

    So each runs on stand-ins, modes without edges, and its result is kept; what depends on the
    mode (the chart, the verdict, the limit) is asked of the real modes elsewhere.
    """

    def __init__(self, deps: AgentDeps, facts: frozenset[str], *, is_direct: bool = False) -> None:
        """``facts`` are those that count; ``is_direct``: run on the real modes, every time."""
        self._host = _Host()
        self._runtime = Runtime(store=self._host)
        self._is_direct = is_direct
        self._facts = facts
        free = (SwitchEdge(to=ANY, ask="never"),)
        modes = [
            Mode(slug=slug, name="-", role_definition="-", groups=(), switches=free)
            for slug in (*deps.catalog, _LIMIT)
        ]
        self._slugs = [*deps.catalog]
        catalog = deps.catalog if is_direct else Catalog(modes, deps.catalog.default)
        self._deps = replace(deps, catalog=catalog, started_calls=StartedCalls())
        self._known: dict[tuple[str, Place, Outside], Place] = {}

    def run(self, node: str, place: Place, outside: Outside = Outside()) -> Place:  # noqa: B008  # frozen
        """Where the node leads."""
        if self._is_direct:
            return self._run(node, place, outside)
        names = defaultdict[str, str](iter(self._slugs).__next__)  # a stand-in for each mode
        # A node sees only whether there is a limit.
        limit = place.limit
        renamed = _rename(place, names, limit and _LIMIT)
        if outside.before is not None:
            outside = outside._replace(before=names[outside.before])
        if outside.news == "mode":
            outside = outside._replace(value=names[str(outside.value)])
        elif outside.news == "limit":
            limit, outside = outside.value, outside._replace(value=_LIMIT)
        key = node, renamed, outside
        to = self._known.get(key)
        if to is None:
            to = self._known[key] = self._run(*key)
        return _rename(to, {name: slug for slug, name in names.items()}, to.limit and limit)

    def _run(self, node: str, place: Place, outside: Outside) -> Place:
        state = cast("dict[str, Any]", build_state(self._deps, place))
        if outside.before is not None:
            state["first_mode"] = outside.before
        if outside.is_said:
            state["messages"] = [*state["messages"], _MORE]
        if outside.is_void:
            state["switch"]["digest"] = ""
        state |= {"end_subtask": outside.is_stopped, "compact": outside.wants_summary}
        self._host.news = {outside.news: outside.value}
        if node == "act":
            due = [[None]] if outside.has_calls else []
            task = cast("ActTask", {**state, "due_calls": due, "is_last": True})
            moved = drive(move_on(self._deps, task, {}, "", self._host, is_done=outside.is_done))
            return read_place(merge(state, moved.update), self._facts)
        start = drive(find_start(self._deps, node, state, "", self._host))
        update = drive(run_step(start, NODES[node], _CONFIG, self._runtime))
        return read_place(merge(state, update), self._facts)


def drive(coroutine: Coroutine[object, None, Any]) -> Any:
    """Run a coroutine that waits for nothing; returns its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a step of the proof waits for something outside")


def _rename(place: Place, names: Mapping[str, str], limit: str | None) -> Place:
    """The place with stand-ins for its modes, under this limit."""
    return Place(
        names[place.mode],
        place.phase,
        limit,
        place.approvals,
        place.switch and _rename_switch(place.switch, names),
        place.task and Task(names[place.task.mode], *place.task[1:]),
        place.parents and tuple([_rename_frame(frame, names) for frame in place.parents]),
        place.facts,
    )


def _rename_switch(switch: Pending, names: Mapping[str, str]) -> Pending:
    target, is_task, approvals, then, how = switch
    then = then and tuple([_rename_switch(following, names) for following in then])
    return Pending(names[target], is_task, approvals, then, how)


def _rename_frame(frame: Frame, names: Mapping[str, str]) -> Frame:
    mode, approvals, task, then, facts = frame
    then = then and tuple([_rename_switch(following, names) for following in then])
    return Frame(names[mode], approvals, task and Task(names[task.mode], *task[1:]), then, facts)
