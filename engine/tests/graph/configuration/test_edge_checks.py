"""Edges that do not load: the notice names the file, the line and what to do."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from modeshift.configuration.loading import AgentLoader
from modeshift.modes.edges.edge_table import Way
from modeshift.testing.plugin import Snapshot
from tests.harness.modes import MODES
from tests.harness.place import UserFolders, modes_file
from tests.tables import rows


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The folder of modes of a clone, to change."""
    shutil.copytree(MODES.parent, tmp_path / "clone")
    return tmp_path / "clone/modes"


def load(place: UserFolders, clone: Path, **more: Any) -> AgentLoader:
    return place.loader(modes_folder=clone, trust_workspace=True, **more)


def add(clone: Path, slug: str, line: str) -> int:
    """Add a line to a mode's file; gives its number."""
    file = clone / f"{slug}.yaml"
    text = file.read_text().rstrip("\n") + f"\n{line}\n"
    file.write_text(text)
    return text.count("\n")


def test_what_does_not_load_is_named(place: UserFolders, clone: Path, snapshot: Snapshot) -> None:
    file, told = clone / "code.yaml", {}
    before = file.read_text()
    for line in (
        *("switches: [kode]", "enterFrom: [{from: kode}]", "subtasks: [kode]"),
        *("switches: [{to: ask, when: test_passed}]", "switches: [{to: ask, when: not}]"),
        *("switches: [{to: ask, when: tests_passed}]", "switches: [ask, ask]"),
        *("switches: [{to: ask, ask: always}]", "enterFrom: [code]", "then: kode", "then: '*'"),
    ):
        file.write_text(before)
        number = add(clone, "code", line)
        deps = load(place, clone).deps()
        assert "code" not in deps.catalog
        told[f"line {number}: {line}"] = "\n".join(deps.notices)
    snapshot("edges.txt", told)


def test_a_mode_that_a_person_alone_enters_loads(place: UserFolders, clone: Path) -> None:
    """And so does one to which only that one leads."""
    add(clone, "code", "enterFrom: []")
    add(clone, "debug", "enterFrom: [code]")
    deps = load(place, clone).deps()
    assert deps.notices == ()
    assert {"code", "debug"} < {*deps.catalog}
    assert "(a person alone enters it)" in deps.machine.chart.mermaid()


def test_it_stays_as_it_was_in_a_running_process(place: UserFolders, clone: Path) -> None:
    loader = load(place, clone)
    assert "code" in loader.deps().catalog
    add(clone, "code", "enterFrom: [code]")
    deps = loader.deps()
    assert "code" in deps.catalog
    assert "it stays as it was" in deps.notices[0]


def test_the_owners_tests_are_read(place: UserFolders, clone: Path) -> None:
    add(clone, "code", "switches: [{to: ask, when: tests_passed}]")
    (clone / "project.yaml").write_text("tests: {command: make test, files: [Makefile]}\n")
    deps = load(place, clone).deps()
    assert (deps.notices, "project" in deps.catalog) == ((), False)
    assert deps.tests is not None
    assert (deps.tests.command, deps.tests.files) == ("make test", ("Makefile",))


def test_wrong_tests_of_the_owner(place: UserFolders, clone: Path, snapshot: Snapshot) -> None:
    told = {}
    for wrong in (
        "tests: make test",
        "# Ours\ntests:\n  command: make\n  files:\n  - a\n  - ../x\n",
        "\ntests:\n  files: [a]\n",
        "# Ours\n\ntest: {}\n",
        '{"tests": {"command": "make",\n "file": []}}',
        '{"tests": "\\ud83d\\ude00"}',  # JSON, and not YAML
        "- tests",
    ):
        (clone / "project.yaml").write_text(wrong)
        deps = load(place, clone).deps()
        assert deps.tests is None
        told[wrong] = "\n".join(deps.notices)
    snapshot("project-tests.txt", told)


BUILT_IN = "switches: [{to: ask, when: plan_written, otherwise: Plan.}, {to: debug}]"


def test_a_workspaces_mode_narrows(place: UserFolders, clone: Path, snapshot: Snapshot) -> None:
    add(clone, "code", f"{BUILT_IN}\nsubtasks: [ask]")
    told = {}
    for rest in (
        *("switches: [architect]", "switches: ['*']", "switches: [{to: ask, ask: never}]"),
        *("subtasks: [ask, code]", "enterFrom: ['*']"),
    ):
        place.project_modes.write_text(modes_file("code", role="Wider.", rest=f"    {rest}\n"))
        deps = load(place, clone).deps()
        told[rest] = "\n".join(deps.notices)
        assert (deps.catalog["code"].role_definition != "Wider.") is ("enterFrom" not in rest)
        edge = deps.edges.find("code", "ask", Way.ASK)
        assert edge is not None
        assert (edge.when, deps.edges.find("code", "architect", Way.ASK)) == ("plan_written", None)
    snapshot("edges-of-a-workspace.txt", told)


BROKEN = {"an edge": "switches: [kode]", "a tool group": "groups: [grp]", "the file": "groups: 5"}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("is_clones", [True, False])
def test_where_the_owners_mode_does_not_load_a_workspaces_stays_away(
    place: UserFolders, clone: Path, what: str, is_clones: bool
) -> None:
    """Nobody knows what it would have forbidden; a mode in effect stays as it was."""
    place.project_modes.write_text(modes_file("docs", role="Theirs.", groups="edit"))
    good, bad = "switches: [ask]", BROKEN[what]
    if what == "the file" and not is_clones:
        bad = "groups: ["
    owners = clone / "docs.yaml" if is_clones else place.global_modes

    def write(line: str) -> None:
        mode = "slug: docs\nname: D\nroleDefinition: Ours.\n"
        mode += line if "groups" in line else f"groups: [read]\n{line}"
        lines = mode.splitlines()
        indented = "".join(f"    {line}\n" for line in lines)
        owners.write_text(f"{mode}\n" if is_clones else f"customModes:\n  - {indented.lstrip()}")

    write(good)
    loader = load(place, clone)
    assert loader.deps().edges.find("docs", "code", Way.ASK) is None
    write(bad)
    deps = loader.deps()
    assert deps.edges.find("docs", "code", Way.ASK) is None, "in a process that goes on"
    deps = load(place, clone).deps()
    assert "docs" not in deps.catalog, deps.catalog["docs"]
    assert "mode 'docs' is left out: one of yours does not load" in "\n".join(deps.notices)


def test_a_workspaces_mode_keeps_and_narrows(place: UserFolders, clone: Path) -> None:
    add(clone, "code", f"{BUILT_IN}\nsubtasks: [ask]")
    rest = "    switches: [{to: ask, when: plan_written, otherwise: Plan.}]\n"
    place.project_modes.write_text(modes_file("code", role="Mine.", rest=rest))
    deps = load(place, clone).deps()
    edge = deps.edges.find("code", "ask", Way.ASK)
    assert edge is not None
    assert edge.when == "plan_written"
    assert deps.edges.find("code", "debug", Way.ASK) is None
    assert deps.edges.find("code", "code", Way.TASK) is None
    place.global_modes.write_text(modes_file("code", role="Mine."))
    place.project_modes.unlink()
    assert not load(place, clone).deps().edges.has_limits, "the owner's own file replaces them"


@rows(
    "owners workspaces",
    ("switches: [{to: ask, when: plan_written}, '*']", "switches: ['*']"),
    ("enterFrom: [{from: ask, when: plan_written}, '*']", "enterFrom: ['*']"),
)
def test_a_star_of_a_workspaces_mode_names_no_more_modes(
    place: UserFolders, clone: Path, owners: str, workspaces: str
) -> None:
    add(clone, "debug", owners)
    place.project_modes.write_text(modes_file("debug", role="Wider.", rest=f"    {workspaces}\n"))
    deps = load(place, clone).deps()
    assert "'*' stands for 'ask', too" in deps.notices[0]
    assert deps.catalog["debug"].role_definition != "Wider."


def test_what_the_owner_forbids_later_holds_at_once(place: UserFolders, clone: Path) -> None:
    place.project_modes.write_text(modes_file("debug", rest="    switches: [code]\n"))
    loader = load(place, clone)
    assert loader.deps().edges.find("debug", "code", Way.ASK) is not None
    add(clone, "debug", "switches: [ask]")
    deps = loader.deps()
    assert "an edge that modes/debug.yaml does not have" in deps.notices[0]
    assert deps.edges.find("debug", "code", Way.ASK) is None


def test_a_free_edge_that_gains_asks(place: UserFolders, clone: Path) -> None:
    number = add(clone, "ask", "switches: [{to: code, ask: never}, '*']")
    deps = load(place, clone).deps()
    (notice,) = deps.notices
    assert notice == (
        f"modes/ask.yaml, line {number}: mode 'ask': switches: ask: never: 'code' may have more "
        "rights: the group 'edit'; a person is asked"
    )


def test_files_of_other_programs_load_as_before(place: UserFolders, clone: Path) -> None:
    place.global_modes.write_text(modes_file("theirs"))
    place.project_modes.write_text(modes_file("workspaces"))
    deps = load(place, clone).deps()
    assert (deps.notices, deps.edges.has_limits) == ((), False)
    assert deps.edges.find("theirs", "workspaces", Way.ASK) is not None
