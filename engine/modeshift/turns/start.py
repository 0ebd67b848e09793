"""``Start``, which ``find_start`` makes: the thread as a node finds it, in its mode by now."""

from dataclasses import dataclass, field
from typing import cast

from langgraph.store.base import BaseStore

from modeshift.calls.remembered import forget
from modeshift.modes.errors import NodeError
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import begin_thread
from modeshift.threads.mailbox import StateValues, read_host_changes
from modeshift.threads.routing import reconcile_mode
from modeshift.threads.state import State, Update
from modeshift.turns.due_switch import DueSwitch, find_due_switch
from modeshift.turns.intake import Opening


@dataclass(frozen=True)
class Start:
    """What a step begins with."""

    deps: AgentDeps
    node: str
    thread: str
    """The thread's id."""
    state: State
    now: Configuration
    phase: str | None = None
    """The phase whose node it is; None in ``intake`` and ``act``, which have moves of their own."""
    changed: Update = field(default_factory=Update)
    """A change of mode by the host that is not recorded yet."""
    update: Update = field(default_factory=Update)
    """What the engine writes whatever the node decides: ``changed``, and what the host has set."""
    opening: Opening | None = None
    due: DueSwitch | None = None

    def refuse(self, problem: str) -> NodeError:
        """The error for what the node must not do."""
        return NodeError(f"the node {self.node!r} {problem}")


async def find_start(
    deps: AgentDeps, node: str, values: StateValues, thread: str, store: BaseStore | None
) -> Start:
    """Take in what the host has set, and reconcile the mode; ``act`` does so call by call."""
    state = cast("State", values)
    if node == "act":
        return Start(deps, node, thread, state, Configuration(state.get("mode", ""), Phase.ACTING))
    has_host = node in ("intake", "review")
    changes = await read_host_changes(store, thread, state) if has_host else {}
    if node == "intake":
        opening = Opening(deps, await begin_thread(deps, state), changes)
        await opening.look_up(thread)
        return Start(deps, node, thread, opening.state, opening.now, opening=opening)
    if "forget" in changes:
        changes |= forget(state, [*state.get("forget", ()), *changes["forget"]])
    state = cast("State", {**state, **changes, "parents": state.get("parents", [])})
    now, changed = reconcile_mode(deps, state)
    update = cast("Update", {**changes, **changed})
    if "facts" in changed:
        state = {**state, "facts": changed["facts"]}
    due = await find_due_switch(deps, state, changed) if now.phase == Phase.SWITCHING else None
    return Start(deps, node, thread, state, now, now.phase, changed, update, due=due)
