"""``check_edges``: finds edges between modes that do not fit, and modes that none leads to."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from modeshift.configuration.last_loaded import LastLoaded
from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import find_reached
from modeshift.modes.edges.edge_table import EdgeTable, Way
from modeshift.modes.edges.edges import ANY, SwitchEdge, parse_condition
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import ModeFileError
from modeshift.modes.facts import NEED_TESTS, Fact
from modeshift.modes.mode import Level, Mode
from modeshift.modes.rights import find_growth


def check_edges(
    modes: Iterable[Mode], last: LastLoaded, facts: Mapping[str, Fact], *, has_tests: bool
) -> list[Mode]:
    """The modes, lowest precedence first, without those whose edges do not fit.

    A workspace's mode keeps what the edges of the one forbid that it replaces; where that one does
    not load, nobody knows what that is.
    """
    listed = list(modes)
    slugs = {mode.slug for mode in listed}
    by_slug: dict[str, Mode] = {}
    checked_modes: list[Mode] = []

    def check(mode: Mode) -> Mode:
        for problem in _find_problems(mode, slugs, facts, has_tests):
            raise ModeFileError(problem)
        return mode

    for mode in listed:
        before = by_slug.get(mode.slug)
        checked = last.load(f"{mode.file} {mode.slug} edges", partial(check, mode))
        if mode.level is not Level.PROJECT:
            if checked is None:
                last.lost.append(mode.slug)
        elif last.has_lost(mode.slug):
            why = f"{mode.file}: mode {mode.slug!r} is left out"
            last.notices.append(f"{why}: one of yours does not load, and may allow less")
            checked = None
        elif checked is not None and before is not None:
            try:
                checked = _narrow(before, checked)
            except ModeFileError as error:  # not its last version: the owner may allow less by now
                last.notices.append(f"{error}; the mode of {before.file} is used")
                checked = None
        if checked is not None:
            by_slug[mode.slug] = checked
            checked_modes.append(checked)
    return checked_modes


def _say(mode: Mode, place: str, problem: str) -> str:
    line = mode.lines.get(place) or mode.lines.get(place.partition(".")[0])
    where = f", line {line}" if line else ""
    return f"{mode.file}{where}: mode {mode.slug!r}: {place.partition('.')[0]}: {problem}"


def _list_ends(mode: Mode) -> Iterator[tuple[str, str, str | None]]:
    """For each edge, its place in the file, the other mode, and the condition."""
    for number, exit in enumerate(mode.switches or ()):
        yield f"switches.{number}", exit.to, exit.when
    for number, entry in enumerate(mode.enter_from or ()):
        yield f"enterFrom.{number}", entry.source, entry.when
    for number, slug in enumerate(mode.subtasks or ()):
        yield f"subtasks.{number}", slug, None
    if mode.then is not None:
        yield "then", mode.then, None


def _find_problems(
    mode: Mode, slugs: Collection[str], facts: Mapping[str, Fact], has_tests: bool
) -> Iterator[str]:
    for place, slug, when in _list_ends(mode):
        if slug not in slugs and (slug != ANY or place == "then"):
            known = ", ".join(sorted(slugs))
            yield _say(mode, place, f"unknown mode {slug!r}; the modes are: {known}")
        for name in parse_condition(when).facts if when else ():
            if name not in facts:
                known = ", ".join(facts)
                yield _say(mode, place, f"unknown fact {name!r}; the facts are: {known}")
            if name in NEED_TESTS and not has_tests:
                where = "write tests: {command: ...} into modes/project.yaml"
                yield _say(mode, place, f"{name!r} needs the test command; {where}")


def _narrow(before: Mode, mode: Mode) -> Mode:
    """The workspace's mode with the edges of the one that it replaces, or fewer of them."""
    kept: dict[str, object] = {"then": before.then or mode.then}
    for key, name in (("switches", "switches"), ("enterFrom", "enter_from"), ("subtasks",) * 2):
        theirs, ours = getattr(before, name), getattr(mode, name)
        for number, edge in enumerate(ours or ()):
            is_free = isinstance(edge, SwitchEdge) and edge.ask == "never"
            if edge not in (theirs or ()) and (is_free or theirs is not None):
                why = f"an edge that {before.file} does not have; only you can allow more"
                raise ModeFileError(_say(mode, f"{key}.{number}", why))
        slugs = _list_slugs(ours or ())
        for slug in _list_slugs(theirs or ()) if ANY in slugs else ():
            if slug not in slugs:
                why = f"{ANY!r} stands for {slug!r}, too, which {before.file} names"
                raise ModeFileError(_say(mode, f"{key}.{slugs.index(ANY)}", why))
        kept[name] = theirs if ours is None else ours
    return mode.model_copy(update=kept)


def _list_slugs(edges: Iterable[Any]) -> list[str]:
    return [edge if isinstance(edge, str) else getattr(edge, edge.end) for edge in edges]


def drop_unreached(modes: Iterable[Mode], default: str, last: LastLoaded) -> list[Mode]:
    """The modes that the model can reach, whatever the conditions.

    It begins in the default one, and in those that a person alone enters.
    """
    listed = list(modes)
    table = EdgeTable({mode.slug: mode for mode in listed}.values())
    reached = {mode.slug for mode in listed}
    if table.has_limits:
        ways = (Way.ASK, Way.TASK)
        reached = find_reached(
            {default, *table.by_hand},
            lambda source: [slug for way in ways for slug, _ in table.list_ways(source, way)],
        )

    def check(mode: Mode) -> Mode:
        if mode.slug not in reached:
            place = "enterFrom" if mode.enter_from is not None else "switches"
            how = f"no edge leads here from the default mode {default!r}; add {mode.slug!r} to "
            how += "the switches or subtasks of a mode, or this mode's enterFrom"
            raise ModeFileError(_say(mode, place, how))
        return mode

    names = ((mode, f"{mode.file} {mode.slug} way in") for mode in listed)
    checked = (last.load(name, partial(check, mode)) for mode, name in names)
    return [mode for mode in checked if mode is not None]


def list_asking(catalog: Catalog, specs: Iterable[ToolSpec]) -> Iterator[str]:
    """Each ``ask: never`` that asks all the same, each ``then`` that is not followed, and why."""
    tools = tuple(specs)
    for mode in catalog.values():
        then = catalog.get(mode.then or "")
        if then is not None and (growth := find_growth(mode, then, tools)):
            why = f"{then.slug!r} may have more rights: {growth}; a thread stays where it is"
            yield _say(mode, "then", why)
        for number, edge in enumerate(mode.switches or ()):
            targets = catalog if edge.to == ANY else [edge.to] if edge.to in catalog else []
            for target in targets if edge.ask == "never" else ():
                growth = find_growth(mode, catalog[target], tools)
                if growth is not None and target != mode.slug:
                    why = f"{target!r} may have more rights: {growth}; a person is asked"
                    yield _say(mode, f"switches.{number}", f"ask: never: {why}")
