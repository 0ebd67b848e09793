"""``find_due_switch``: the switch that a person approved, when its turn comes: a ``DueSwitch``."""

from dataclasses import dataclass

from modeshift.calls.ways import Values, find_way_problem, is_free, read_fact_values
from modeshift.messages.repair import VOID
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.phases import Event, Phase, Seen, choose
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import State, Switch, Update
from modeshift.turns.subtasks import is_as_approved


@dataclass(frozen=True)
class DueSwitch:
    """An approved switch, or why it must not take effect any more."""

    switch: Switch | None
    """None if it must not: the mode or the limit has changed, or its edge is not open any more."""
    why: str
    """Why it must not, as the model is told."""
    way: Way
    facts: Values
    """The facts that decide on it."""
    event: Event
    """The event by which it takes effect."""


async def find_due_switch(deps: AgentDeps, state: State, changed: Update) -> DueSwitch:
    """The thread's switch; ``changed`` is a change of mode by the host since."""
    switch = state.get("switch")
    if switch is None:
        raise InvalidInputError("phase 'switching' without an approved switch in the state")
    way = Way.TASK if switch.get("task") else Way.ASK
    if switch.get("how") == "by hand":
        way = Way.HAND
    targets = [switch["mode_slug"]]
    facts = await read_fact_values(deps, state.get("facts", {}), state["mode"], targets, way)
    problem = _find_problem(deps, state, switch, way, facts)
    is_valid = not changed and problem is None and is_as_approved(deps, state, switch)
    (event,) = choose(Phase.SWITCHING, Seen(has_switch=True))
    return DueSwitch(switch if is_valid else None, problem or VOID, way, facts, event)


def _find_problem(
    deps: AgentDeps, state: State, switch: Switch, way: Way, facts: Values
) -> str | None:
    """Why it cannot be applied any more, by the edge; None if it can."""
    source, target = state["mode"], switch["mode_slug"]
    if way is Way.HAND or target not in deps.catalog or source not in deps.catalog:
        return None
    if problem := find_way_problem(deps, source, target, way, facts):
        return problem
    is_still_free = switch.get("how") != "by edge" or is_free(
        deps, deps.seat_in(state, source), target, state.get("remembered", ())
    )
    return None if is_still_free else "A person has to say yes by now; ask again."
