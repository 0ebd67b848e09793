"""The properties that must hold, of every move and of all places together."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from modeshift.calls.plans import PlanLimit
from modeshift.modes.edges.edges import ANY, parse_condition
from modeshift.modes.effects import ToolSpec
from modeshift.modes.machine import Configuration
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Phase
from modeshift.modes.policy import list_free_commands
from modeshift.modes.rules.files import get_protection, is_secret
from modeshift.modes.rules.matching import EVERY, Subject
from modeshift.proof.moves import WHO, Move
from modeshift.proof.places import Place
from modeshift.proof.seats import CLOSED_OFF, STRICTNESS, Probe, Seats

HELD = "src/"
_PLAN = PlanLimit({"path": "PLAN.md", "digest": "", "text": "", "paths": [HELD]}, is_current=True)
_APPLIED = ("person", "edge")
"""Who makes the moves that apply a switch."""
MoveCheck = Callable[[Seats, Place, Move], str | None]
"""Why a move from a place breaks the property; None if it does not."""
SeatCheck = Callable[[Seats, Place], str | None]
"""Why a property is broken wherever a thread has this mode, limit and depth."""


class Property(NamedTuple):
    """One thing that must hold, in words."""

    name: str
    of_move: MoveCheck | None = None
    of_seat: SeatCheck | None = None
    must_reach: Callable[[Place], bool] | None = None
    """Tells the places of which one must be reachable from everywhere, without the host."""
    applies: Callable[[Seats, Place], bool] = lambda _seats, _place: True
    """From which places one must be reachable."""
    whose: Collection[str] = WHO - {"host"}
    """Whose moves the property is about."""


def _grows(seats: Seats, place: Place, move: Move) -> str | None:
    to = move.to
    if (to.mode, to.limit, to.approvals) == (place.mode, place.limit, place.approvals):
        return None
    pairs = zip(seats.probes, seats.rights(place), seats.rights(to), strict=True)
    gained = next((probe for probe, before, after in pairs if after > before), None)
    return None if gained is None else f"{gained} is gained, and nobody has said yes"


def _differs(seats: Seats, place: Place, move: Move) -> str | None:
    """Find a change of mode, approvals, limit or due switch that nobody has made."""
    to, is_end = move.to, len(move.to.parents) < len(place.parents)
    place = move.given or place
    switch, task = place.switch, place.task
    expected, due = (place.mode, place.approvals), switch
    if switch is not None and place.phase == Phase.SWITCHING and move.who in _APPLIED:
        expected = switch.target, switch.approvals or place.approvals
    elif move.who == "model" and _follows(seats, place, move):
        expected = to.mode, place.approvals
    elif is_end and task is not None:
        parent = place.parents[-1]
        follows = parent.then and move.who == "end"
        due = parent.then[0]._replace(then=parent.then[1:]) if follows else None
        expected = (
            parent.mode if place.mode == task.mode else place.mode,
            parent.approvals if place.approvals == task.approvals else place.approvals,
        )
    if to.switch is not None and to.phase not in (Phase.ACTING, Phase.SWITCHING):
        return f"the switch to {to.switch.target} is still there in the phase {to.phase}"
    if to.switch is not None and to.switch != due:
        return f"what is due is {to.switch}, and decided was {due}"
    if to.limit != place.limit:
        return f"the limit is {to.limit} instead of {place.limit}, and the host has not set it"
    if (to.mode, to.approvals) != expected:
        return (
            f"it is {to.mode} mode with approvals {to.approvals}, and approved was "
            f"{expected[0]} with {expected[1]}"
        )
    return None


def _follows(seats: Seats, place: Place, move: Move) -> bool:
    """Whether the move ends a turn, in a mode whose ``then`` names the move's new mode."""
    is_end = move.who == "model" and move.to.phase == Phase.IDLE and place.task is None
    return is_end and seats.deps.catalog[place.mode].then == move.to.mode


def _begins_wrongly(seats: Seats, place: Place, move: Move) -> str | None:
    if move.to.task is None:
        return None
    if not move.to.depth:
        return "a sub-task does not count as one"
    deeper = move.to.depth - place.depth
    if deeper < 1:
        return None
    if move.who != "person" or place.switch is None or not place.switch.is_task:
        return "a sub-task begins that no person has approved"
    if deeper > 1 or move.to.depth > seats.deps.subtask_depth:
        return f"the sub-task is at depth {move.to.depth}"
    return None


def _enters_shut(seats: Seats, place: Place, move: Move) -> str | None:
    switch = place.switch
    if place.mode != move.to.mode and _follows(seats, place, move):
        source, target = (seats.deps.catalog[mode] for mode in (place.mode, move.to.mode))
        source = source.model_copy(update={"switches": None})
        shut = _find_shut(source, target, False, {})  # noqa: FBT003  # no sub-task
        return shut or find_beyond(seats, place, target)
    if switch is None or place.phase != Phase.SWITCHING or move.who not in _APPLIED:
        return None
    source, target = (seats.deps.catalog[slug] for slug in (place.mode, switch.target))
    if (problem := find_beyond(seats, place, target)) is not None:
        return problem
    if switch.how == "by hand":
        return None
    edges = {edge.to: edge.ask for edge in source.switches or ()}
    if switch.how == "by edge" and edges.get(target.slug, edges.get(ANY)) != "never":
        return f"{target.slug} is entered from {source.slug} unasked, without `ask: never`"
    why = _find_shut(source, target, switch.is_task, seats.values(place))
    return why and f"{target.slug} is entered from {source.slug}, though {why}"


def _find_shut(
    source: Mode, target: Mode, is_task: bool, values: Mapping[str, bool | None]
) -> str | None:
    """Why there is no open edge, by the two modes' files; on purpose not by the engine's code."""
    ends = list[tuple[str, dict[str, str | None]]]()
    if target.enter_from is not None and source.slug != target.slug:
        ends.append((source.slug, {edge.source: edge.when for edge in target.enter_from}))
    if is_task and source.subtasks is not None:
        ends.append((target.slug, dict.fromkeys(source.subtasks)))
    if not is_task and source.switches is not None:
        ends.append((target.slug, {edge.to: edge.when for edge in source.switches}))
    for slug, table in ends:
        if not {slug, ANY} & table.keys():
            return "there is no such edge"
        when = table.get(slug, table.get(ANY))
        if when is not None and not parse_condition(when).holds(values):
            return f"`{when}` does not hold"
    return None


def _keeps_facts(seats: Seats, place: Place, move: Move) -> str | None:
    if not move.to.facts:
        return None
    switch = place.switch
    is_applied = place.phase == Phase.SWITCHING and move.who in _APPLIED
    is_end = len(move.to.parents) < len(place.parents)
    before = place.parents[-1].mode if is_end else place.mode
    is_set = is_end or (move.who == "host" and place.task is None)
    if not is_applied and (move.to.mode == before or not (is_set or _follows(seats, place, move))):
        return None
    ended = ("mode", "conversation") if is_applied and switch and switch.is_task else ("mode",)
    kept = (name for name in move.to.facts if seats.deps.facts[name].scope in ended)
    return next((f"{name} holds in {move.to.mode}, as it did before" for name in kept), None)


def find_beyond(seats: Seats, place: Place, target: Mode) -> str | None:
    """Why a mode is beyond the limit: a tool that it has and the limit has not."""
    if place.limit is None:
        return None
    limit = seats.deps.catalog[place.limit]
    if _read_file(seats, target).tools <= _read_file(seats, limit).tools:
        return None
    return f"{target.slug} is entered under the limit {limit.slug}, beyond it"


def _ends_within(_: Seats, place: Place, move: Move) -> str | None:
    if move.to.task is None or move.to.phase != Phase.IDLE:
        return None
    sources = (Phase.IDLE, Phase.THINKING, Phase.ACTING, Phase.RETURNING)
    return "the turn ends in a sub-task" if place.phase in sources else None


class _File(NamedTuple):
    """What a mode has by its file."""

    tools: frozenset[str]
    """Names of tools, and once more of those that are not for the read-only sandbox alone."""
    calls: tuple[bool, ...]
    """For each probe, whether the call may be made."""


def _read_file(seats: Seats, mode: Mode) -> _File:
    file: _File | None = seats.files.get(mode.slug)
    if file is None:
        tools = [tool for tool in seats.deps.toolbox.specs if _has(mode, tool, None)]
        free = (
            f"{tool.name}, free"
            for tool in tools
            if mode.grant(tool.group or "") and not _is_held(mode, tool)
        )
        calls = (_has(mode, probe.tool.spec, probe) for probe in seats.probes)
        file = seats.files[mode.slug] = _File(
            frozenset([*free, *(tool.name for tool in tools)]), tuple(calls)
        )
    return file


def _has(mode: Mode, tool: ToolSpec, probe: Probe | None) -> bool:
    """Whether a mode has the tool, or may make the call, by its groups; not by engine code."""
    is_open = _is_held(mode, tool) and not (tool.sandboxed and tool.effect.runs_programs)
    if is_open or _denies(mode, tool, probe):
        return False
    grant = mode.grant(tool.group) if tool.group is not None else None
    if tool.group is None:
        is_left_out = tool.effect.part and tool.effect.part not in mode.conversation
        return not is_left_out and not (tool.effect.starts_subtask and mode.subtasks == ())
    if grant is None:
        lines = list_free_commands(mode, tool)
        return bool(lines) if probe is None else probe.args.get(tool.command or "") in lines
    if tool.served is not None:
        return grant.has_server(tool.served.server) and grant.has_tool(tool.served.name)
    if probe is None or grant.file_regex is None:
        return True
    return all(grant.permits(probe.args[name]) for name in tool.paths)


def _is_held(mode: Mode, tool: ToolSpec) -> bool:
    """Whether the mode's file has the tool's group for the read-only sandbox alone."""
    return any(grant.group == tool.group and grant.sandbox for grant in mode.groups)


def _denies(mode: Mode, tool: ToolSpec, probe: Probe | None) -> bool:
    """Whether a rule denies every call, or this very one; of the mode's own the last counts."""
    subject = Subject(tool, probe.args) if probe is not None else None

    def is_for(pattern: str, kind: str) -> bool:
        if subject is None:
            return pattern == EVERY or kind != "deny"  # of which some calls are not denied
        return subject.may_match(pattern) == "yes"

    *denials, own = (
        [kind for name, kind in rules.rules.get(tool.name, {}).items() if is_for(name, kind)]
        for rules in (*mode.denials, mode.own_rules)
    )
    return own[-1:] == ["deny"] or any("deny" in kinds for kinds in denials)


def _has_more(seats: Seats, place: Place) -> str | None:
    seat = seats.deps.seat(place.mode, place.limit, place.depth)
    rights = [seat.mode, *([seat.limit] if seat.limit is not None else [])]
    for name in seat.tools:
        tool = seats.deps.toolbox[name].spec
        if lacking := [mode.slug for mode in rights if name not in _read_file(seats, mode).tools]:
            return f"the model is given {name}, which {lacking[0]} lacks"
        if tool.effect.switches_mode and place.depth and not tool.effect.starts_subtask:
            return f"a sub-task is given {name}"
    node = seats.deps.machine.node(Configuration(place.mode, Phase.THINKING))
    if node not in (place.mode, f"mode_{place.mode}"):
        return f"in {place.mode} the node {node} runs"
    for mode in rights:
        grant = mode.grant("edit")
        may_edit = grant is not None and grant.file_regex is None
        if not may_edit and seat.edit_restriction is None:
            return f"commands may change any file, which {mode.slug} may not"
    for mode in rights:
        calls = zip(seats.probes, seats.rights(place), _read_file(seats, mode).calls, strict=True)
        if beyond := next((probe for probe, right, has in calls if right and not has), None):
            return f"{beyond} may run, which {mode.slug} lacks"
    return None


def _looks_and_changes(seats: Seats, place: Place) -> str | None:
    rights = [seats.deps.catalog[slug] for slug in (place.mode, place.limit) if slug is not None]
    for probe, right in zip(seats.probes, seats.rights(place), strict=True):
        if not right or not any(_is_held(mode, probe.tool.spec) for mode in rights):
            continue
        for done in seats.describe(place, probe, is_run=True):
            if right != CLOSED_OFF or done.may_have_written or done.line or done.runs_tests:
                return f"{probe} runs in {place.mode}, and may change something"
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
        if right == STRICTNESS["allow"] and (
            steers or secret or unheld or not (by_effect or by_rule)
        ):
            return f"{probe} runs in {place.mode} with approvals {place.approvals}, unasked"
    return None


def _writes_beyond(seats: Seats, place: Place) -> str | None:
    """Find an edit that would run outside the one folder that the plan names."""
    for probe in (probe for probe in seats.probes if probe.tool.spec.effect.changes_files):
        is_inside = all(str(probe.args[name]).startswith(HELD) for name in probe.tool.spec.paths)
        if not is_inside and seats.judge(place, *probe, _PLAN).kind == "allow":
            return f"{probe} runs in {place.mode} unasked, and the plan names only {HELD}"
    return None


def _switches_on(seats: Seats, place: Place) -> str | None:
    """Find a mode that can be asked for though the turn has had all of its switches."""
    target = next((slug for slug in seats.deps.catalog if slug != place.mode), None)
    if target is None or not seats.may_switch_again(place, target):
        return None
    return f"after {seats.deps.max_switches} switches in a turn {target} can be asked for"


ENTERS = "a mode is entered only along an open edge, by hand, and within the limit"
BUILT_IN = (
    Property(
        "rights grow only by a person, the host, or the end of a sub-task",
        _grows,
        whose=("model", "edge"),
    ),
    Property("mode, approvals and limit change only as was approved", _differs, whose=WHO),
    Property("a sub-task is approved by a person, and never deeper than allowed", _begins_wrongly),
    Property(ENTERS, _enters_shut),
    Property("what is true of a mode alone ends with it", _keeps_facts, whose=WHO),
    Property(
        "no node sends an event that is illegal where it sends it",
        lambda _, place, move: f"in {place.phase}: {move.what}",
        whose=("illegal",),
    ),
    Property(
        "a sub-task's end leads back to the conversation that began it", _ends_within, whose=WHO
    ),
    Property("no tool is bound or runs that the mode or the limit lacks", of_seat=_has_more),
    Property("what needs a person's yes never runs without", of_seat=_runs_unasked),
    Property("no edit outside of an approved plan runs unasked", of_seat=_writes_beyond),
    Property("a read-only command changes no file and no fact", of_seat=_looks_and_changes),
    Property("a turn has no more switches than the setting says", of_seat=_switches_on),
    Property(
        "from everywhere the turn can end", must_reach=lambda place: place.phase == Phase.IDLE
    ),
)
