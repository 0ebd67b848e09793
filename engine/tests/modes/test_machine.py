"""The catalog, the effects, the state machine, and which events a node sends by what it knows."""

import itertools
import re
import sys
import threading
from typing import Any, get_args

import acp.schema
import pytest
from statemachine.exceptions import TransitionNotAllowed

from graph.chart import CHART
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.effects import EFFECTS, EffectName, ToolKind, ToolSpec
from modeshift.modes.errors import ModeFileError, UnknownModeError
from modeshift.modes.machine import Chart, Configuration, Machine
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Event, Phase, Seen, choose
from tests.harness.modes import load_catalog
from tests.harness.root import ENGINE

LEGAL = {(source, event): target for source, event, target in CHART.edges}
"""The clone's edges, which `make diagram` and docs/own/modes.md draw."""
TO_MODE = (Event.SWITCH_MODE, Event.RETURNED, Event.NEXT)


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(load_catalog(), [], CHART)


def test_every_event_in_every_phase_and_modes_that_are_not_there(machine: Machine) -> None:
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
    for slug in ("kode", "", None, "mode code", "m_0", "idle"):
        for event in (*TO_MODE, Event.SET_MODE):
            with pytest.raises(UnknownModeError):
                machine.send(Configuration("ask", Phase.SWITCHING), event, slug)
        with pytest.raises(UnknownModeError):
            machine.send(Configuration(str(slug), Phase.IDLE), Event.START)


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


def test_the_default_mode_comes_first() -> None:
    assert next(iter(load_catalog())) == "ask"
    assert next(iter(load_catalog("debug"))) == "debug"
    with pytest.raises(UnknownModeError, match="'kode'; the modes are: "):
        load_catalog("kode")
    mode = Mode(slug="a", name="A", role_definition="x", groups=())
    with pytest.raises(ModeFileError, match="'a'"):
        Catalog([mode, mode], "a")


LETTERS = dict(zip("CPSIDTNF", Seen._fields, strict=True))
"""Calls, Person, Switch, In sub-task, Done, Turn, Needs summary, Failed."""
ROWS = """
idle: - reset | T reset start | TF reset start | N reset compact | TN reset start compact
idle: I reset return | IN reset return | IT reset start | ITN reset start compact
idle: ITNF reset start return
thinking: - answer | I return | C act | CI act | P review | CP review | CPNI compact
reviewing: - decided | S switch | CS act
acting: - acted | I acted | D complete | DI return | DS switch | DCS act
switching: - reset start | S switch_mode
compacting: - complete | T compacted
returning: - returned | S next
"""


@pytest.mark.parametrize("line", ROWS.strip().splitlines())
def test_the_events_of_a_node(line: str) -> None:
    phase, _, rows = line.partition(": ")
    for row in rows.split(" | "):
        knows, *events = row.split()
        seen = Seen(**{LETTERS[letter]: True for letter in knows.strip("-")})
        assert choose(Phase(phase), seen) == tuple(events), row


def test_an_unknown_phase_is_refused() -> None:
    with pytest.raises(AssertionError, match="'elsewhere'"):
        choose("elsewhere", Seen())  # type: ignore[arg-type]  # an owner's own phase


FOLDERS = ("modeshift", "template")
MAY_NAME_EFFECTS = {
    f"modeshift/{name}"
    for name in (
        *("modes/effects.py", "tools/tool.py", "tools/server_tools.py", "testing/check.py"),
    )
}
"""The table, and where tools declare theirs."""
ASKS = re.compile(
    r"\.effect (?:in|not in) |\beffect (?:is|==|!=) |\b(?:is|in|==|!=) \(?\w+\.effect\b(?!\.)"
    r"|\beffect\.name\b|\b(?:case|match) .*\beffect\b"
    r"|^from modeshift\.modes\.effects import "
    r"(?!(?:Effect|NO_EFFECT|Risk|ToolSpec|ServerTool|[, ])+$)",
    re.M,
)


def test_no_code_asks_which_effect_a_tool_has() -> None:
    for folder in FOLDERS:
        for file in (ENGINE / folder).rglob("*.py"):
            where = file.relative_to(ENGINE).as_posix()
            if where not in MAY_NAME_EFFECTS:
                questions = ASKS.findall(file.read_text(encoding="utf-8"))
                assert not questions, f"{where} asks {questions}: make a column of it in effects.py"


def test_effects_and_kinds_are_known_and_a_question_is_found() -> None:
    assert tuple(EFFECTS) == get_args(EffectName)
    assert set(get_args(ToolKind)) <= set(get_args(acp.schema.ToolKind))
    for line in (
        *("one.effect is EDIT", "effect == other", "EDIT in (spec.effect, 1)"),
        *("EDIT is spec.effect", "spec.effect.name", "from modeshift.modes.effects import EFFECTS"),
        "match tool.effect:",
    ):
        assert ASKS.search(line), line
