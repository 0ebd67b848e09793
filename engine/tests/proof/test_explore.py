"""What is left out of the exploration changes nothing: the same places, the same nodes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.chart import CHART
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import ChartData
from modeshift.modes.edges.edges import EntryEdge, SwitchEdge
from modeshift.modes.facts import BUILT_IN, Done, Fact, ProjectTests
from modeshift.modes.mode import Mode
from modeshift.modes.phases import Phase
from modeshift.proof import seats
from modeshift.proof.explore import Exploration
from modeshift.proof.nodes import Nodes, Outside
from modeshift.proof.places import (
    Frame,
    Pending,
    Place,
    Task,
    build_state,
    drop_parents,
    read_place,
)
from modeshift.proof.prove import find_facts, prove, read_own
from modeshift.threads.deps import AgentDeps
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import make_toolbox
from tests.harness.modes import load_catalog
from tests.tables import rows

Changes = Mapping[str, Mapping[str, Any]]
"""By mode what is other than in the clone's, or new."""


def make_deps(
    folder: Path, *slugs: str, changes: Changes = MappingProxyType({}), depth: int = 1
) -> AgentDeps:
    known = load_catalog()
    modes = [
        (
            known[slug]
            if slug in known
            else Mode(slug=slug, name="-", role_definition="-", groups=())
        ).model_copy(update=changes.get(slug, {}))
        for slug in slugs
    ]
    catalog = Catalog(modes, slugs[0])
    toolbox = make_toolbox(Workspace(folder), catalog)
    tests = ProjectTests(command="make test", files=("Makefile",))
    models = Models(OfflineModel())
    return AgentDeps(catalog, toolbox, models, subtask_depth=depth, tests=tests)


def reach(deps: AgentDeps, *, is_exact: bool) -> set[Place]:
    """Where a thread can be; in which order sub-tasks follow each other is not in the reduced."""
    walk = Exploration(deps, find_facts(deps, ()), is_exact=is_exact)
    walk.run()
    places = set(map(drop_parents, walk.places))
    return {
        place._replace(switch=place.switch and place.switch._replace(then=())) for place in places
    }


def switches(
    to: str, when: str | None = None, ask: Literal["never"] | None = None
) -> dict[str, Any]:
    return {"switches": (SwitchEdge(to=to, when=when, ask=ask),)}


BOTH_EXAMPLES: Changes = {
    "architect": {"subtasks": ("code",)},
    "code": {
        "enter_from": (EntryEdge(source="architect", when="plan_written"),),
        "switches": (SwitchEdge(to="*", when="tests_passed or not files_changed"),),
        "subtasks": (),
    },
}
TO_ASK: dict[str, Any] = {"subtasks": ("ask",)}
MINE: dict[str, Any] = {"groups": load_catalog()["code"].groups, "subtasks": ("mine",)}
NO_TASKS: dict[str, Any] = {"subtasks": ()}


@pytest.mark.slow
@rows(
    "slugs changes",
    (("ask", "code"), {}),
    (("architect", "code"), BOTH_EXAMPLES),
    (("code", "ask"), {"code": TO_ASK | switches("ask", "tests_changed"), "ask": NO_TASKS}),
    (("mine", "ask"), {"mine": MINE | switches("ask", "asked_user", "never"), "ask": NO_TASKS}),
)
def test_reduced_places_are_exact(tmp_path: Path, slugs: tuple[str, ...], changes: Changes) -> None:
    deps = make_deps(tmp_path, *slugs, changes=changes)
    exact, reduced = (reach(deps, is_exact=is_exact) for is_exact in (True, False))
    assert exact - reduced == set()
    assert reduced - exact == set()


@pytest.mark.slow
def test_two_sub_tasks_deep_too(tmp_path: Path) -> None:
    deps = make_deps(tmp_path, "code", depth=2)
    assert reach(deps, is_exact=True) == reach(deps, is_exact=False)


def limit_edits(slug: str, file_regex: str) -> dict[str, Any]:
    grants, changed = load_catalog()[slug].groups, {"file_regex": file_regex}
    limited = (each.model_copy(update=changed) if each.group == "edit" else each for each in grants)
    return {"groups": tuple(limited), "subtasks": ()}


def is_rare(before: bool, done: Done) -> bool:
    return before or "rare" in done.written


NO_EDITS = {name: {"*": "deny"} for name in ("write_file", "edit_file")}


@rows(
    "fact slugs changes",
    ("plan_written", ("architect", "ask"), {"architect": limit_edits("architect", r"\.rst$")}),
    ("plan_written", ("architect", "code"), {"architect": {"permissions": NO_EDITS}}),
    ("files_changed", ("ask", "mine"), {}),  # a call of which nobody has seen the end
    ("is_rare", ("ask", "mine"), {}),
    ("tests_changed", ("ask", "mine"), {}),
)
def test_what_none_of_the_calls_that_are_tried_makes_true_is_explored(
    fact: str, slugs: tuple[str, str], changes: Changes, tmp_path: Path
) -> None:
    source, target = slugs
    edge = {**changes.get(source, {}), **switches(target, fact)}
    deps = make_deps(tmp_path, *slugs, changes={**changes, source: edge})
    deps = replace(deps, facts={**deps.facts, "is_rare": Fact.of(is_rare)})
    untaken = [result for result in prove(deps).results if result.problem]
    assert untaken == []


@pytest.mark.parametrize("fact", BUILT_IN, ids=lambda fact: fact.name)
def test_a_built_in_fact_is_true_after_a_call_that_is_tried(fact: Fact, tmp_path: Path) -> None:
    """One that is not: its lines or files are missing, and the proof says that no edge opens."""
    source = "architect" if fact.name == "plan_written" else "code"
    edge = {source: switches("ask", fact.name)}
    deps = make_deps(tmp_path, source, "ask", changes=edge, depth=0)
    assert [result for result in prove(deps).results if result.problem] == []


def committed(before: bool, done: Done) -> bool:
    return before or done.line == "git commit"


def readme_written(before: bool, done: Done) -> bool:
    return before or "README.md" in done.written


@rows(
    "fact",
    replace(Fact.of(committed), lines=("git commit",)),
    replace(Fact.of(readme_written), files=("README.md",)),
    ids=lambda fact: fact.name,
)
def test_a_new_built_in_fact_brings_what_it_follows_from(
    fact: Fact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for here, is_broken in ((fact, False), (replace(fact, lines=(), files=()), True)):
        monkeypatch.setattr(seats, "BUILT_IN", (*BUILT_IN, here))
        edge = {"code": switches("ask", fact.name)}
        deps = make_deps(tmp_path, "code", "ask", changes=edge, depth=0)
        deps = replace(deps, facts={**deps.facts, fact.name: here})
        assert any(result.problem for result in prove(deps).results) == is_broken


def test_a_sub_task_comes_back_and_an_own_nodes_command_makes_facts_true(tmp_path: Path) -> None:
    edge = {**switches("code", "command_failed"), "subtasks": ("architect",), "permissions": {}}
    deps = make_deps(tmp_path, "architect", "code", changes={"architect": edge})
    proof = prove(deps, read_own(deps, "- always_reachable: code", "properties.yaml"))
    assert [result.name for result in proof.results if result.problem] == ["always_reachable: code"]
    edges = [*CHART.edges, (Phase.THINKING, "check", "checking"), ("checking", "go", "thinking")]
    chart = ChartData({**CHART.nodes, "checking": "check"}, edges)
    changes = {"ask": switches("mine", "tests_passed")}
    deps = replace(make_deps(tmp_path, "ask", "mine", changes=changes, depth=0), chart=chart)
    assert [result for result in prove(deps).results if result.problem] == []
    without = prove(replace(deps, chart=CHART))
    assert [result.problem for result in without.results if result.problem] == [
        "from ask to mine: `tests_passed` never holds there"
    ]


SLUGS = ("ask", "architect", "code", "debug")
MODES, POLICIES = st.sampled_from(SLUGS), st.sampled_from(["manual", "auto"])
CHOSEN = st.none() | POLICIES
HOWS = st.sampled_from(["", "by hand"])
SWITCHES = st.builds(Pending, MODES, st.booleans(), CHOSEN, st.just(()), HOWS)
TASKS = st.builds(Pending, MODES, st.just(True), CHOSEN, st.just(()), HOWS)
THEN = st.just(()) | TASKS.map(lambda task: (task,))
FRAMES = st.builds(Frame, MODES, POLICIES, st.none(), THEN, st.just(frozenset()))
NODES = [("intake", phase) for phase in Phase]
NODES += [("switch_mode", Phase.SWITCHING), ("end_subtask", Phase.RETURNING)]


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, Place, Outside]:
    node, phase = draw(st.sampled_from(NODES))
    has_switch = phase in (Phase.SWITCHING, Phase.ACTING)
    switch = draw(SWITCHES) if has_switch else None
    is_deep = node == "end_subtask" or draw(st.booleans())
    task = draw(st.builds(Task, MODES, POLICIES, st.just(1))) if is_deep else None
    parents = (draw(FRAMES),) if is_deep else ()
    place = Place(draw(MODES), phase, None, draw(POLICIES), switch, task, parents)
    news, value = draw(
        st.just(("", None))
        | st.tuples(st.just("mode"), MODES)
        | st.tuples(st.just("approvals"), POLICIES)
    )
    before, said, stopped = draw(st.none() | MODES), draw(st.booleans()), draw(st.booleans())
    given = Outside(news, value, before, is_said=said, is_stopped=stopped)
    return node, place, given


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Nodes, Nodes]:
    deps = make_deps(tmp_path_factory.mktemp("workspace"), *SLUGS, depth=2)
    facts = frozenset[str]()
    return Nodes(deps, facts, is_direct=True), Nodes(deps, facts)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(step=steps())
def test_a_node_cannot_tell_one_mode_from_another(
    both: tuple[Nodes, Nodes], step: tuple[str, Place, Outside]
) -> None:
    direct, renamed = both
    assert renamed.run(*step) == direct.run(*step)


def test_a_place_is_read_from_the_state_that_it_makes(tmp_path: Path) -> None:
    deps = replace(make_deps(tmp_path, "ask", "code"))
    then = (Pending("ask", True, None),)
    switch = Pending("code", True, "auto", then, "by hand")
    frame = Frame("ask", "manual", Task("ask", "auto", 1), then, frozenset({"plan_written"}))
    facts = frozenset({"plan_written", "tests_passed", "asked_user"})
    place = Place("code", "switching", "ask", "auto", switch, Task("code", "manual", 2), (frame,))
    place = place._replace(facts=facts)
    assert read_place(build_state(deps, place), deps.facts) == place
