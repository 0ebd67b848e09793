"""The state machine: exactly the moves in the table, and no others."""

import itertools
import sys
import threading
from typing import Any

import pytest
from statemachine.exceptions import TransitionNotAllowed

from graph.chart import CHART
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.errors import UnknownModeError
from modeshift.modes.machine import Chart, Configuration, Machine
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Event, Phase
from tests.harness.modes import load_catalog

LEGAL = {(source, event): target for source, event, target in CHART.edges}
"""The clone's edges, which `make diagram` and docs/own/modes.md draw."""
TO_MODE = (Event.SWITCH_MODE, Event.RETURNED, Event.NEXT)


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(load_catalog(), [], CHART)


def test_every_event_in_every_phase(machine: Machine) -> None:
    for phase, event in itertools.product(Phase, Event):
        now = Configuration("ask", phase)
        target = "code" if event in (*TO_MODE, Event.SET_MODE) else None
        if event is Event.RESET:
            assert machine.send(now, event) == ("ask", Phase.IDLE)
        elif event is Event.SET_MODE:
            assert machine.send(now, event, target) == (target, phase)
        elif (phase, event) in LEGAL:
            assert machine.send(now, event, target) == (target or "ask", LEGAL[phase, event])
        else:
            with pytest.raises(TransitionNotAllowed):
                machine.send(now, event, target)


def test_what_was_sent_before_changes_nothing() -> None:
    """Phases and modes do not depend on each other, so a chart asks the library once for each."""
    modes = [*load_catalog().values()]
    every = [*itertools.product(map(str, load_catalog()), Phase, Event, ("ask", "code"), Way)]
    outcomes = list[dict[Any, object]]()
    for sends in (every, every[::-1]):
        chart, after = Chart(modes, "ask", CHART), dict[Any, object]()
        for send in sends:
            mode, phase, event, target, way = send
            try:
                after[send] = chart.send(Configuration(mode, phase), event, target, way)
            except TransitionNotAllowed as error:
                after[send] = str(error)
        outcomes.append(after)
    assert outcomes[0] == outcomes[1]


def test_a_mode_that_is_not_there(machine: Machine) -> None:
    for slug in ("kode", "", None, "mode code", "m_0", "idle"):
        for event in (*TO_MODE, Event.SET_MODE):
            with pytest.raises(UnknownModeError):
                machine.send(Configuration("ask", Phase.SWITCHING), event, slug)
        with pytest.raises(UnknownModeError):
            machine.send(Configuration(str(slug), Phase.IDLE), Event.START)


def test_tools_are_bound_only_while_it_thinks() -> None:
    specs = [
        ToolSpec("look", EFFECTS["read"], None),
        ToolSpec("write", EFFECTS["edit"], load_catalog()["code"].groups[1].group),
    ]
    machine = Machine(load_catalog(), iter(specs), CHART)
    bound = {
        (slug, phase): machine.bound_tools(Configuration(slug, phase))
        for slug in ("ask", "code")
        for phase in Phase
    }
    assert bound.pop(("ask", Phase.THINKING)) == ("look",)
    assert bound.pop(("code", Phase.THINKING)) == ("look", "write")
    assert set(bound.values()) == {()}
    assert machine.compare_tools("ask", "code") == (["write"], [])
    assert machine.compare_tools("code", "ask") == ([], ["write"])


def test_slugs_that_are_names_of_something_else() -> None:
    slugs = ["idle", "phase", "mode", "send", "states", "0", "review", "act", "plan"]
    catalog = Catalog([Mode(slug=s, name=s, role_definition="x", groups=()) for s in slugs], "idle")
    machine = Machine(catalog, [], CHART, ["plan"])
    for source, target in itertools.permutations(slugs, 2):
        now = Configuration(source, Phase.SWITCHING)
        assert machine.send(now, Event.SWITCH_MODE, target) == (target, Phase.THINKING)
    nodes = {slug: machine.node(Configuration(slug, Phase.THINKING)) for slug in slugs}
    taken = {slug: f"mode_{slug}" for slug in ("review", "act", "plan")}
    assert nodes == {slug: slug for slug in slugs} | taken


def test_threads_may_share_it(machine: Machine) -> None:
    """A chart under threads loses results; the machine sends one event at a time."""
    wrong: list[Configuration] = []

    def work(mode: str) -> None:
        for phase in itertools.islice(itertools.cycle(Phase), 100):
            after = Machine(load_catalog(), [], CHART) if phase is Phase.IDLE else machine
            place = after.send(Configuration("ask", phase), Event.SET_MODE, mode)
            if place != (mode, phase):
                wrong.append(place)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=[mode]) for mode in ("code", "debug", "ask")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert wrong == []
