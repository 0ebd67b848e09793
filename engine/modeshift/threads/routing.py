"""Which mode and phase a thread is in, and which node is next: the state machine decides."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_type_hints

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.store.base import BaseStore
from langgraph.types import Send
from typing_extensions import TypedDict

from modeshift.modes.errors import NodeError
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Event, Phase
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import enter_mode
from modeshift.threads.mailbox import REVISION, StateValues, read_host_changes
from modeshift.threads.state import ActTask, ModeChange, RoutingState, State, Update


def build_router(deps: AgentDeps) -> Callable[..., Awaitable[str | list[Send]]]:
    """The one edge behind every node."""
    own: dict[str, Any] = {key: Any for spec in deps.toolbox.specs for key in spec.state}
    routed = TypedDict("Routed", {**get_type_hints(RoutingState), **own})  # type: ignore[misc]

    # A coroutine function: LangGraph sends a plain one to a worker thread, at every step.
    async def route(
        state: RoutingState, config: RunnableConfig, store: BaseStore | None
    ) -> str | list[Send]:
        # LangGraph gives none where ``update_state`` asks what is next: the next step looks.
        if store is not None and await read_host_changes(store, get_thread(config), state):
            return "intake"
        return next_step(deps, state)

    route.__annotations__["state"] = routed  # the keys that LangGraph reads
    return route


def leaves_due_calls(host_changes: JsonObject) -> bool:
    """Whether what is planned may go on: each call is judged again, by what is allowed now."""
    return bool(host_changes) and host_changes.keys() <= {"approvals", "forget", REVISION}


def get_thread(config: RunnableConfig) -> str:
    """The thread's id."""
    return str(config["configurable"].get("thread_id", ""))


def next_step(deps: AgentDeps, state: RoutingState) -> str | list[Send]:
    """The node that comes next; for ``act`` a task for each call of the first batch."""
    node = deps.machine.node(Configuration(state["mode"], state["phase"]))
    if node != "act":
        return END if node is None else node
    if not state["due_calls"]:
        raise NodeError("the phase 'acting' without a call that is due")
    batch, *rest = state["due_calls"]
    return [
        Send(
            "act",
            ActTask({**state, "due_calls": rest, "planned": due, "is_last": due is batch[-1]}),
        )
        for due in batch
    ]


def is_cut_off(values: StateValues, tasks: Sequence[object], interrupts: Sequence[object]) -> bool:
    """Whether a thread's turn neither ended nor waits for a person, as no run goes on.

    ``tasks`` are LangGraph's, which has them also where it names no next node: where a step was
    done and its checkpoint is missing. The phase tells where ``update_state`` has left no task.
    """
    return not interrupts and bool(tasks or values.get("phase", Phase.IDLE) != Phase.IDLE)


def reconcile_mode(deps: AgentDeps, state: State) -> tuple[Configuration, Update]:
    """Where the thread is, and the update for a change of mode that is not recorded yet.

    Only the host writes the mode from outside, in a run's input or with ``update_state``: a mode
    that is in the state and not in the record was set by the host. A mode that no longer exists
    gives way to the default one.
    """
    changes, default = state.get("mode_changes"), deps.catalog.default
    recorded = changes[-1]["target"] if changes else state.get("first_mode", default)
    mode = recorded if recorded in deps.catalog else default
    before = Configuration(mode, state.get("phase", Phase.IDLE.value))
    slug = state.get("mode", before.mode)
    if slug == before.mode:  # which is in the catalog
        return before, {}
    if slug not in deps.catalog:
        reason = f"mode {slug!r} no longer exists"
        return before, change_mode(state, slug, before.mode, reason, "nobody")
    after = deps.machine.send(before, Event.SET_MODE, slug)
    reason = "set by the host"
    return after, change_mode(state, before.mode, after.mode, reason, "host", "by hand")


def change_mode(
    state: State,
    source: str,
    target: str,
    reason: str,
    decided_by: Literal["human", "host", "nobody"],
    how: Literal["by hand", "by edge"] | None = None,
) -> Update:
    """The update of the state for a change of mode, with its record."""
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    record = ModeChange(
        source=source, target=target, reason=reason, decided_by=decided_by, when=when
    )
    if written := state.get("written"):
        record["written"] = written
    if how is not None:
        record["how"] = how
    plan = state.get("approved_plan") if decided_by == "nobody" else None  # who lifts no limit
    own = Update(written=[], facts=enter_mode(state), approved_plan=plan, fresh_from=None)
    return Update(mode=target, mode_changes=[record], **own)
