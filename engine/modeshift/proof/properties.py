"""What must hold: of every move, and of all places together."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from modeshift.modes.edge_table import Way
from modeshift.modes.effects import ToolSpec
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Phase
from modeshift.modes.policy import list_free_commands
from modeshift.modes.rules.files import get_protection, is_secret
from modeshift.proof.moves import Move
from modeshift.proof.places import Place
from modeshift.proof.seats import Probe, Seats

_APPLIED = ("person", "edge")
"""Whose the moves are that apply a switch."""
MoveCheck = Callable[[Seats, Place, Move], str | None]
"""Why a move from a place breaks the property; None if it does not."""
SeatCheck = Callable[[Seats, Place], str | None]
"""Why it is broken wherever the thread is in this mode, under this limit, so deep."""


class Property(NamedTuple):
    """One thing that must hold, in words."""

    name: str
    of_move: MoveCheck | None = None
    of_seat: SeatCheck | None = None
    must_reach: Callable[[Place], bool] | None = None
    """From everywhere such a place must be reached, without the host."""
    applies: Callable[[Seats, Place], bool] = lambda _seats, _place: True
    """From which places it must be."""


def _grows(seats: Seats, place: Place, move: Move) -> str | None:
    if move.who not in ("model", "edge") or (
        move.to[:4:2] == place[:4:2] and (move.to.approvals == place.approvals)
    ):
        return None
    pairs = zip(seats.probes, seats.rights(place), seats.rights(move.to), strict=True)
    gained = next((probe for probe, before, after in pairs if after > before), None)
    return None if gained is None else f"{gained} is gained, and nobody has said yes"


def _differs(_: Seats, place: Place, move: Move) -> str | None:
    """A change of mode, approvals or limit that is not the one that was approved."""
    to, switch, task = move.to, place.switch, place.task
    expected = place.mode, place.approvals
    if move.who == "host":
        return None
    if place.phase == Phase.SWITCHING and switch is not None and move.who in _APPLIED:
        expected = switch.target, switch.approvals or place.approvals
    elif move.who == "end" and task is not None and place.parents:
        parent = place.parents[-1]
        expected = (
            parent.mode if place.mode == task.mode else place.mode,
            parent.approvals if place.approvals == task.approvals else place.approvals,
        )
    if to.switch is not None and to.phase not in (Phase.ACTING, Phase.SWITCHING):
        return f"the switch to {to.switch.target} is still there in the phase {to.phase}"
    if to.limit != place.limit:
        return f"the limit is {to.limit} instead of {place.limit}, and the host has not set it"
    if (to.mode, to.approvals) != expected:
        return (
            f"it is {to.mode} mode with approvals {to.approvals}, and approved was "
            f"{expected[0]} with {expected[1]}"
        )
    return None


def _begins_wrongly(seats: Seats, place: Place, move: Move) -> str | None:
    deeper = move.to.depth - place.depth
    if move.to.task is not None and not move.to.depth:
        return "a sub-task does not count as one"
    if deeper < 1:
        return None
    if move.who != "person" or place.switch is None or not place.switch.is_task:
        return "a sub-task begins that no person has approved"
    if deeper > 1 or move.to.depth > seats.deps.subtask_depth:
        return f"the sub-task is at depth {move.to.depth}"
    return None


def _enters_shut(seats: Seats, place: Place, move: Move) -> str | None:
    switch = place.switch
    if place.phase != Phase.SWITCHING or switch is None or move.who not in _APPLIED:
        return None
    source, target = (seats.deps.catalog[slug] for slug in (place.mode, switch.target))
    if (problem := find_beyond(seats, place, target)) is not None:
        return problem
    if switch.how == "by hand":
        return None
    way = Way.TASK if switch.is_task else Way.ASK
    edge = seats.deps.edges.find(source.slug, target.slug, way)
    if edge is None or not edge.is_open(seats.values(place)):
        why = "there is no such edge" if edge is None else f"`{edge.when}` does not hold"
        return f"{target.slug} is entered from {source.slug}, though {why}"
    return None


def find_beyond(seats: Seats, place: Place, target: Mode) -> str | None:
    """Why a mode is beyond the limit: a tool that it has and the limit has not."""
    if place.limit is None:
        return None
    limit = seats.deps.catalog[place.limit]
    for tool in seats.deps.toolbox.specs:
        if _has(target, tool, None) and not _has(limit, tool, None):
            return f"{target.slug} is entered under the limit {limit.slug}, beyond it"
    return None


def _illegal(_: Seats, place: Place, move: Move) -> str | None:
    return f"in {place.phase}: {move.what}" if move.who == "illegal" else None


def _ends_within(_: Seats, place: Place, move: Move) -> str | None:
    is_end = move.to.phase == Phase.IDLE and place.phase in (Phase.THINKING, Phase.ACTING)
    return (
        "the turn ends in a sub-task" if is_end and move.to.task and move.who == "model" else None
    )


def _has(mode: Mode, tool: ToolSpec, probe: Probe | None) -> bool:
    """Whether a mode has the tool, or may make the call: by its groups alone, said once more."""
    if any(_denies(rules.rules, tool) for rules in (*mode.denials, mode.own_rules)):
        return False
    grant = mode.grant(tool.group) if tool.group is not None else None
    if tool.group is None:
        return True
    if grant is None:
        lines = list_free_commands(mode, tool)
        return bool(lines) if probe is None else probe.args.get(tool.command or "") in lines
    if tool.served is not None:
        return grant.has_server(tool.served.server) and grant.has_tool(tool.served.name)
    if probe is None or grant.file_regex is None:
        return True
    return all(grant.permits(probe.args[name]) for name in tool.paths)


def _denies(rules: Mapping[str, Mapping[str, str]], tool: ToolSpec) -> bool:
    return rules.get(tool.name, {}).get("*") == "deny"


def _has_more(seats: Seats, place: Place) -> str | None:
    seat = seats.deps.seat(place.mode, place.limit, place.depth)
    rights = [seat.mode, *([seat.limit] if seat.limit is not None else [])]
    for name in seat.tools:
        tool = seats.deps.toolbox[name].spec
        if lacking := next((mode for mode in rights if not _has(mode, tool, None)), None):
            return f"the model is given {name}, which {lacking.slug} lacks"
        if tool.effect.switches_mode and place.depth and not tool.effect.starts_subtask:
            return f"a sub-task is given {name}"
    for probe, right in zip(seats.probes, seats.rights(place), strict=True):
        lacking = next((mode for mode in rights if not _has(mode, probe.tool.spec, probe)), None)
        if right and lacking is not None:
            return f"{probe} may run, which {lacking.slug} lacks"
    return None


def _runs_unasked(seats: Seats, place: Place) -> str | None:
    mode = seats.deps.catalog[place.mode]
    for probe, right in zip(seats.probes, seats.rights(place), strict=True):
        tool = probe.tool.spec
        paths = [path for name in tool.paths if (path := probe.args[name]) is not None]
        steers = tool.effect.changes_files and any(get_protection(path) == "ask" for path in paths)
        secret = any(map(is_secret, paths))
        by_effect = tool.effect.asks == "never" or (
            tool.effect.asks == "under manual" and place.approvals == "auto"
        )
        sources = (mode.own_rules, *mode.defaults)
        by_rule = any("allow" in source.rules.get(tool.name, {}).values() for source in sources)
        unheld = tool.effect.runs_programs and not tool.sandboxed
        if right == 2 and (steers or secret or unheld or not (by_effect or by_rule)):
            return f"{probe} runs in {place.mode} with approvals {place.approvals}, unasked"
    return None


def _is_over(place: Place) -> bool:
    return place.phase == Phase.IDLE


ENTERS = "a mode is entered only along an open edge, by hand, and within the limit"
BUILT_IN = (
    Property("rights grow only by a person, the host, or the end of a sub-task", _grows),
    Property("mode, approvals and limit change only as was approved", _differs),
    Property("a sub-task is approved by a person, and never deeper than allowed", _begins_wrongly),
    Property(ENTERS, _enters_shut),
    Property("no node sends an event that is illegal where it sends it", _illegal),
    Property("a sub-task's end leads back to the conversation that began it", _ends_within),
    Property("no tool is bound or runs that the mode or the limit lacks", of_seat=_has_more),
    Property("what needs a person's yes never runs without", of_seat=_runs_unasked),
    Property("from everywhere the turn can end", must_reach=_is_over),
)
