"""Runs the engine's own steps on places: what a node does is not written a second time."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, Op, Result
from typing_extensions import override

from modeshift.graph.deps import AgentDeps
from modeshift.graph.state import Update
from modeshift.graph.step import Step
from modeshift.graph.threads import StartedCalls
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges import ANY, SwitchEdge
from modeshift.modes.mode import Mode
from modeshift.proof.places import Frame, Pending, Place, Task, build_state, merge, read_place

_LIMIT = "some-limit"
_CONFIG: RunnableConfig = {"configurable": {"thread_id": ""}}


async def _intake(step: Step) -> Update:
    return step.keep_waiting() if step.is_waiting else step.begin_turn()


async def _switch_mode(step: Step) -> Update:
    switch = step.approved_switch()
    if switch is None:
        return step.drop_switch()
    return step.begin_subtask(switch) if switch.get("task") else step.enter(switch)


async def _end_subtask(step: Step) -> Update:
    return await step.end_subtask()


_NODES: Mapping[str, Callable[[Step], Awaitable[Any]]] = {
    "intake": _intake,
    "switch_mode": _switch_mode,
    "end_subtask": _end_subtask,
}


class Given(NamedTuple):
    """What happens to a thread from outside, at the node that runs."""

    news: tuple[str, ...] = ()
    """Settings that the host has made: ``mode``, ``approvals``; they are as in the place."""
    before: str | None = None
    """The mode that the thread was in before the host wrote another one into its state."""
    is_said: bool = False
    """Whether a person says something."""
    is_stopped: bool = False
    """Whether a person stops the sub-task."""
    is_void: bool = False
    """Whether the approved switch is not as it was approved, or beyond the limit."""
    wants_summary: bool = False


class _Host(BaseStore):
    """A store with what the host has set."""

    news: Mapping[str, Any] = {}  # set anew for each step

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

    So each is run on modes without edges that stand for any, and what it did is kept; what
    depends on the mode (the chart, the verdict, the limit) is asked of the real ones elsewhere.
    """

    def __init__(self, deps: AgentDeps, facts: frozenset[str], *, is_direct: bool = False) -> None:
        """``facts`` are those that count; ``is_direct``: on the modes themselves, every time."""
        self._host = _Host()
        self._is_direct = is_direct
        self._facts = facts
        free = (SwitchEdge(to=ANY, ask="never"),)
        modes = [
            Mode(slug=slug, name="-", role_definition="-", groups=(), switches=free)
            for slug in (*deps.catalog, _LIMIT)
        ]
        self._slugs = [*deps.catalog]
        catalog = deps.catalog if is_direct else Catalog(modes, deps.catalog.default)
        self._deps = replace(deps, catalog=catalog, started_calls=StartedCalls(), tests=None)
        self._known: dict[tuple[str, Place, Given], Place] = {}

    def run(self, node: str, place: Place, given: Given = Given()) -> Place:  # noqa: B008  # frozen
        """Where the node leads."""
        if self._is_direct:
            return self._run(node, place, given)
        names: dict[str, str] = {}
        limit = place.limit and _LIMIT
        key = node, _rename(place._replace(limit=limit), names, self._slugs), given
        if given.before is not None:
            before = _name(given.before, names, self._slugs)
            key = node, key[1], given._replace(before=before)
        if key not in self._known:
            self._known[key] = self._run(*key)
        back = {name: slug for slug, name in names.items()}
        to = self._known[key]
        return _rename(to._replace(limit=to.limit and place.limit), back)

    def _run(self, node: str, place: Place, given: Given) -> Place:
        state = cast("dict[str, Any]", build_state(self._deps, place))
        if given.before is not None:
            state["first_mode"] = given.before
        if given.is_said:
            state["messages"] = [*state["messages"], HumanMessage("go on", id="more")]
        if given.is_void:
            state["switch"]["digest"] = ""
        state |= {"end_subtask": given.is_stopped, "compact": given.wants_summary}
        self._host.news = {name: state[name] for name in given.news}
        step = Step(self._deps, node, state, _CONFIG, Runtime(store=self._host))
        return read_place(merge(state, _drive(step.run(_NODES[node]))), self._facts)


def _drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a step of the proof waits for something outside")


def _name(slug: str, names: dict[str, str], free: list[str]) -> str:
    if slug not in names:
        names[slug] = free[len(names)]
    return names[slug]


def _rename(place: Place, names: dict[str, str], free: list[str] | None = None) -> Place:
    """The place with other names of modes; those that ``names`` lacks are taken from ``free``."""

    def name(slug: str) -> str:
        return names[slug] if free is None else _name(slug, names, free)

    def pending(switch: Pending) -> Pending:
        then = tuple(map(pending, switch.then)) if switch.then else ()
        return Pending(name(switch.target), switch.is_task, switch.approvals, then, switch.how)

    def task(begun: Task | None) -> Task | None:
        return begun and Task(name(begun.mode), begun.approvals, begun.depth)

    def frame(waits: Frame) -> Frame:
        then = tuple(map(pending, waits.then)) if waits.then else ()
        return Frame(name(waits.mode), waits.approvals, task(waits.task), then, waits.facts)

    return Place(
        name(place.mode),
        place.phase,
        place.limit,
        place.approvals,
        place.switch and pending(place.switch),
        task(place.task),
        tuple(map(frame, place.parents)) if place.parents else (),
        place.facts,
    )
