"""``end_turn``: the mode that a thread goes to when its turn ends, by the mode's ``then``."""

from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Event
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import change_mode
from modeshift.threads.state import State, Update


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
