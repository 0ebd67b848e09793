"""``move_on``: what follows a call; and ``end_turn``: the mode after a turn, by ``then``."""

from typing import cast

from langgraph.store.base import BaseStore
from langgraph.types import Command

from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Event, Phase, Seen, choose
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import read_host_changes
from modeshift.threads.routing import change_mode, leaves_due_calls, next_step
from modeshift.threads.state import ActTask, State, Update


async def move_on(
    deps: AgentDeps,
    task: ActTask,
    update: Update,
    thread: str,
    store: BaseStore | None,
    *,
    is_done: bool,
) -> Command[str]:
    """Advance the state machine and the due calls, once per batch.

    With a ``Command``: an edge is evaluated once for each parallel task, none of which sees others.
    """
    if not task["is_last"]:
        return Command(update=update)
    host_changes = await read_host_changes(store, thread, task)
    if host_changes and not leaves_due_calls(host_changes):
        # What is left of the calls was judged before: ``intake`` answers it.
        return Command(update={**update, "due_calls": []}, goto="intake")
    seen = Seen(
        has_calls=bool(task["due_calls"]),
        has_switch=bool(task["switch"]),
        in_subtask=bool(task.get("subtask")),
        is_done=is_done,
    )
    now = deps.machine.send_all(Configuration(task["mode"], "acting"), choose(Phase.ACTING, seen))
    after_call = cast("State", {**task, **update})
    ended = end_turn(deps, after_call, now) if now.phase == Phase.IDLE else Update()
    update = {**update, **ended, "phase": now.phase, "due_calls": task["due_calls"]}
    after: ActTask = {
        **task,
        "phase": now.phase,
        "written": update.get("written", task["written"]),
        "facts": update.get("facts", task.get("facts", {})),
    }
    return Command(update=update, goto="intake" if host_changes else next_step(deps, after))


def end_turn(deps: AgentDeps, state: State, now: Configuration) -> Update:
    """The change of mode where a turn has ended, in ``now``; empty for none."""
    target = deps.catalog[now.mode].then
    if state.get("subtask") or target not in deps.catalog:
        return {}
    assert target is not None
    limit = deps.seat(now.mode, state.get("limit")).limit
    if (
        target == now.mode
        or find_then_problem(deps, now.mode)
        or deps.find_limit_problem(limit, target)
        or any(approval["mode"] == target for approval in state.get("remembered", ()))
    ):
        return {}
    after = deps.machine.send(now, Event.SET_MODE, target)
    reason = f"a turn in {deps.catalog[now.mode].name} mode has ended"
    return change_mode(state, now.mode, after.mode, reason, "nobody", "by edge")


def find_then_problem(deps: AgentDeps, slug: str) -> str | None:
    """Why no thread follows the mode's ``then``; None if one may, or there is none."""
    target = deps.catalog[slug].then
    if target is None:
        return None
    if growth := deps.find_growth(slug, target):
        return f"{target!r} may have more rights: {growth}"
    if not deps.edges.is_entered_freely(slug, target):
        return f"enterFrom of {target!r} does not name {slug!r}, or has a condition"
    return deps.models.problem(deps.catalog[target])
