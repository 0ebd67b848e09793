"""The verdict as a table: mode x tool x policy."""

from pathlib import Path
from typing import Any

import pytest

from modes.effects import EFFECTS
from modes.errors import FileRestrictionError, NotAllowedError
from modes.policy import Approvals, verdict
from modes.rules.permissions import Kind
from modes.toolspec import ToolSpec
from tests.harness.modes import load_test_catalog
from tools.toolbox import build_toolbox
from tools.workspace.workspace import Workspace

CATALOG = load_test_catalog()
ARGS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.py"},
    "list_files": {"path": "."},
    "search_files": {"regex": "x", "path": "."},
    "write_file": {"path": "a.py", "content": "x"},
    "edit_file": {"path": "a.py", "old": "x", "new": "y"},
    "execute_command": {"command": "make"},
    "switch_mode": {"mode_slug": "debug", "reason": "x"},
    "ask_followup_question": {"question": "x"},
    "update_todo_list": {"todos": []},
    "attempt_completion": {"result": "x"},
}
# Columns: ask, architect, code under manual, code under auto.
TABLE = """
read_file              allow  allow  allow  allow
list_files             allow  allow  allow  allow
search_files           allow  allow  allow  allow
write_file             deny   deny   ask    allow
edit_file              deny   deny   ask    allow
execute_command        deny   deny   ask    ask
switch_mode            ask    ask    ask    ask
ask_followup_question  ask    ask    ask    ask
update_todo_list       allow  allow  allow  allow
attempt_completion     allow  allow  allow  allow
"""
COLUMNS = [("ask", "manual"), ("architect", "manual"), ("code", "manual"), ("code", "auto")]
CASES = [
    (tool, mode, policy, kind)
    for tool, *kinds in (line.split() for line in TABLE.strip().splitlines())
    for (mode, policy), kind in zip(COLUMNS, kinds, strict=True)
]


@pytest.mark.parametrize(("tool", "mode", "policy", "kind"), CASES)
def test_table(tmp_path: Path, tool: str, mode: str, policy: str, kind: str) -> None:
    toolbox = build_toolbox(Workspace(tmp_path), CATALOG)
    found = verdict(CATALOG[mode], toolbox[tool].spec, ARGS[tool], Approvals(policy))
    assert found.kind == kind
    assert found.reason


def specs_of_the_table(folder: Path) -> list[ToolSpec]:
    """A clone's own tools are not in it."""
    toolbox = build_toolbox(Workspace(folder), CATALOG)
    return [toolbox[name].spec for name in ARGS]


@pytest.mark.parametrize("mode", list(CATALOG))
@pytest.mark.parametrize("policy", list(Approvals))
def test_what_is_bound_is_what_may_run(tmp_path: Path, mode: str, policy: Approvals) -> None:
    for spec in specs_of_the_table(tmp_path):
        if verdict(CATALOG[mode], spec, None, policy).kind == "deny":
            assert verdict(CATALOG[mode], spec, ARGS[spec.name], policy).kind == "deny"


def test_a_tool_that_hides_its_files_is_refused_where_files_are_restricted() -> None:
    move = ToolSpec("move_file", EFFECTS["edit"], "edit")
    for args in (None, {"source": "a.md", "target": "b.py"}):
        assert verdict(CATALOG["architect"], move, args, Approvals.AUTO).kind == "deny"
        assert verdict(CATALOG["code"], move, args, Approvals.AUTO).kind == "allow"


def test_a_restricted_file_has_an_error_of_its_own(tmp_path: Path) -> None:
    write = build_toolbox(Workspace(tmp_path), CATALOG)["write_file"].spec
    architect, ask = CATALOG["architect"], CATALOG["ask"]
    args = {"path": "a.md", "content": ""}
    assert verdict(architect, write, args, Approvals.MANUAL).kind == "ask"
    restricted = verdict(architect, write, {**args, "path": "a.md\n"}, Approvals.AUTO)
    assert (restricted.kind, restricted.error) == ("deny", FileRestrictionError)
    assert verdict(ask, write, args, Approvals.AUTO).error is NotAllowedError


def test_no_memory_decides_for_a_person(tmp_path: Path) -> None:
    everything = [("*", False)]
    for spec in specs_of_the_table(tmp_path):
        found = verdict(CATALOG["code"], spec, ARGS[spec.name], Approvals.MANUAL, everything)
        asks = not spec.effect.can_be_allowed
        assert found.kind == ("ask" if asks else "allow"), spec.name


@pytest.mark.parametrize(
    ("paths", "kind"),
    [
        (("a.md", "b.md"), "allow"),
        (("a.md", "b.py"), "deny"),
        (("a.py", "b.md"), "deny"),
        (("a.md", None), "allow"),
        (("a.md", ".git/x.md"), "deny"),
        (("a.md", ".github/x.md"), "ask"),
    ],
)
def test_each_path_of_a_call_counts(paths: tuple[str, str | None], kind: str) -> None:
    move = ToolSpec("move_file", EFFECTS["edit"], "edit", paths=("source", "target"))
    args = dict(zip(move.paths, paths, strict=True))
    assert verdict(CATALOG["architect"], move, args, Approvals.AUTO).kind == kind


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ({"*": "ask", "docs": "allow"}, "ask"),
        ({"*": "ask", "docs": "allow", "src": "allow"}, "ask"),
        ({"*": "ask", "**/?": "allow"}, "allow"),
        ({"src": "deny"}, "deny"),
        ({"docs": "deny"}, "deny"),
    ],
)
def test_each_path_of_a_call_counts_for_rules(rules: dict[str, Kind], kind: str) -> None:
    move = ToolSpec("move_file", EFFECTS["edit"], "edit", paths=("source", "target"))
    mode = CATALOG["code"].model_copy(update={"permissions": {"move_file": rules}})
    args = {"source": "docs/a", "target": "src/b"}
    assert verdict(mode, move, args, Approvals.AUTO).kind == kind


@pytest.mark.parametrize("line", ["true;" * 5000 + "rm x", "x " * 50_000, "x" * 50_000])
def test_a_line_made_to_be_long_asks(tmp_path: Path, line: str) -> None:
    command = build_toolbox(Workspace(tmp_path), CATALOG)["execute_command"].spec
    rules = {"execute_command": {"*": "allow", "rm *": "deny"}}
    mode = CATALOG["code"].model_copy(update={"permissions": rules})
    assert verdict(mode, command, {"command": line}, Approvals.AUTO).kind == "ask"
