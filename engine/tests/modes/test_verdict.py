"""The verdict: the rows of ``verdicts.yaml``, and what a table of rows cannot say.

``published/expected.yaml`` has rows of the same form for files as people publish them.
"""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from modeshift.calls.judging import CallContext, judge
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings
from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.errors import InvalidCallError
from modeshift.modes.mode import Level, Mode, SourcedPermissions
from modeshift.modes.policy import Approvals, verdict
from modeshift.modes.rules.permissions import Kind
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.harness.place import in_sandbox
from tests.tables import rows

HERE = Path(__file__).parent
PUBLISHED = HERE / "published"
SETS: list[dict[str, Any]] = [
    row
    for table in (HERE / "verdicts.yaml", PUBLISHED / "expected.yaml")
    for row in yaml.safe_load(table.read_text(encoding="utf-8"))
]
CATALOG = load_catalog()
MOVE = ToolSpec("move_file", EFFECTS["edit"], "edit", paths=("source", "target"))
EDITS = [{"old": "x", "new": "y"}]
ARGS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.py"},
    "list_files": {"path": "."},
    "search_files": {"regex": "x", "path": "."},
    "write_file": {"path": "a.py", "content": "x"},
    "edit_file": {"path": "a.py", "edits": EDITS},
    "execute_command": {"command": "make"},
    "switch_mode": {"mode_slug": "debug", "reason": "x"},
    "ask_followup_question": {"question": "x"},
    "update_todo_list": {"todos": []},
    "attempt_completion": {"result": "x"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verdicts")


@cache
def deps_of(folder: Path, number: int) -> AgentDeps:
    home, workspace = folder / f"home{number}", folder / f"workspace{number}"
    outside = folder / f"outside{number}"
    for name in ("src/app.py", "docs/guide.md", "secrets/key.txt", "notes.md"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("x")
    for made in (home, outside):
        made.mkdir()
    (outside / "x.md").write_text("x")
    links = {
        "looks.md": "src/app.py",
        "looks.py": "docs/guide.md",
        "plans": "docs",
        "hidden": ".env",
    }
    links |= {"out.md": str(outside / "x.md"), "away": str(outside)}
    for name, target in links.items():
        (workspace / name).symlink_to(target)
    texts = {
        workspace / ".kilocodemodes": "modes",
        workspace / ".roomodes": "roo",
        home / "custom_modes.yaml": "global",
        home / "custom_modes.json": "global_json",
        home / "permissions.yaml": "permissions",
    }
    for file, key in texts.items():
        if key in SETS[number]:
            file.write_text(SETS[number][key])
    if published := SETS[number].get("file"):
        shutil.copy(PUBLISHED / published, workspace / Path(published).suffix)
    deps = AgentLoader(
        Settings(workspace=workspace, config_folder=home, trust_workspace=True, model="offline")
    ).deps()
    if not published:
        assert not [notice for notice in deps.notices if "browser" not in notice]
    return in_sandbox(deps) if SETS[number].get("sandbox", True) else deps


def arguments(deps: AgentDeps, tool: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        return dict(value)
    try:
        spec = deps.toolbox[tool].spec
    except InvalidCallError:
        return {"path": value}
    if spec.effect.switches_mode:
        return {"mode_slug": value, "reason": "because"}
    return {**ARGS.get(tool, {}), spec.command or spec.paths[0]: value}


@pytest.mark.parametrize("number", range(len(SETS)))
async def test_row(folder: Path, number: int) -> None:
    """Of one set of modes and rules, all rows that do not hold."""
    deps = deps_of(folder, number)
    wrong = []
    for row in SETS[number].get("rows", ()):
        mode, tool, value, approvals, expected = row
        context = CallContext(deps.seat(mode), Approvals(approvals))
        args = arguments(deps, tool, value)
        judged = await judge(deps, context, {"name": tool, "args": args, "id": "1"})
        decision = judged.verdict
        is_error = decision.kind == "deny" and expected not in ("allow", "ask", "deny")
        if (
            decision.error.__name__ if is_error else decision.kind
        ) != expected or not decision.reason:
            wrong.append((row, decision.kind, decision.reason))
    assert not wrong


@pytest.mark.parametrize("name", [file.name for file in sorted(PUBLISHED.glob("*modes"))])
def test_what_a_published_file_loads_to(folder: Path, name: str) -> None:
    (number,) = [number for number, row in enumerate(SETS) if row.get("file") == name]
    deps = deps_of(folder, number)
    loaded = [deps.catalog[slug] for slug in deps.catalog]
    assert {
        mode.slug: {"shown": f"{mode.name}, {mode.purpose}", "may": describe(deps, mode)}
        for mode in loaded
        if mode.level is Level.PROJECT
    } == SETS[number].get("loads", {})
    for mode in loaded:
        assert f"- {mode.slug}: {' '.join(mode.purpose.split())}\n" in deps.system_prompt
    notices = SETS[number].get("notices", [])
    for notice, said in zip(deps.notices, notices, strict=True):
        assert said in notice
    for slug, words in SETS[number].get("told", {}).items():
        assert words in deps.seat(slug).words


def describe(deps: AgentDeps, mode: Mode) -> str:
    groups = [f"{one.group} {one.file_regex or ''}".strip() for one in mode.groups]
    if mode.grant("command") and deps.seat(mode.slug).edit_restriction:
        groups.append("no command writes")
    return ", ".join(groups)


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ToolSpec]:
    """The tools that ``ARGS`` has arguments for."""
    toolbox = build_toolbox(Workspace(tmp_path_factory.mktemp("tools")), CATALOG)
    return {name: toolbox[name].spec for name in ARGS}


def test_what_the_user_denies_is_not_bound_and_does_not_ask(specs: dict[str, ToolSpec]) -> None:
    rules: dict[str, dict[str, Kind]] = {"read_file": {"*": "deny"}, "write_file": {"a": "deny"}}
    mode = CATALOG["code"].model_copy(update={"denials": (SourcedPermissions(rules, "mine"),)})
    bound = {
        name: verdict(mode, spec, None, Approvals.AUTO).kind
        for name, spec in specs.items()
        if name in rules
    }
    assert bound == {"read_file": "deny", "write_file": "allow"}
    tree = ToolSpec("move_tree", EFFECTS["edit"], "edit", paths=("path",), reads_below=True)
    rules = {"move_tree": {".git/hooks/*": "deny"}}
    mode = CATALOG["code"].model_copy(update={"denials": (SourcedPermissions(rules, "mine"),)})
    assert verdict(mode, tree, {"path": "."}, Approvals.AUTO).kind == "ask"
    assert verdict(mode, tree, {"path": ".git"}, Approvals.AUTO).kind == "deny"


@pytest.mark.parametrize("name", ARGS)
def test_no_memory_decides_for_a_person(specs: dict[str, ToolSpec], name: str) -> None:
    everything = [("*", False)]
    decision = verdict(CATALOG["code"], specs[name], ARGS[name], Approvals.MANUAL, everything)
    asks = name in ("switch_mode", "ask_followup_question")
    assert decision.kind == ("ask" if asks else "allow")


@rows(
    "mode rules paths kind",
    ("architect", {}, ("a.md", "b.md"), "allow"),
    ("architect", {}, ("a.md", "b.py"), "deny"),
    ("architect", {}, ("a.py", "b.md"), "deny"),
    ("architect", {}, ("a.md", None), "allow"),
    ("architect", {}, ("a.md", ".git/x.md"), "deny"),
    ("architect", {}, ("a.md", ".github/x.md"), "ask"),
    ("code", {"*": "ask", "docs": "allow"}, ("docs/a", "src/b"), "ask"),
    ("code", {"*": "ask", "docs": "allow", "src": "allow"}, ("docs/a", "src/b"), "ask"),
    ("code", {"*": "ask", "**/?": "allow"}, ("docs/a", "src/b"), "allow"),
    ("code", {"src": "deny"}, ("docs/a", "src/b"), "deny"),
    ("code", {"docs": "deny"}, ("docs/a", "src/b"), "deny"),
)
def test_each_path_of_a_call_counts(
    mode: str, rules: dict[str, Kind], paths: tuple[str, str | None], kind: str
) -> None:
    ruled = CATALOG[mode].model_copy(update={"permissions": {"move_file": rules}})
    args = dict(zip(MOVE.paths, paths, strict=True))
    assert verdict(ruled, MOVE, args, Approvals.AUTO).kind == kind


@rows(
    "rules kind pattern",
    ({"*": "allow", "*.md": "allow"}, "allow", "*"),
    ({"*": "ask", "*.md": "allow", "x": "deny"}, "ask", "*"),
    ({"*": "allow", "*.md": "ask"}, "ask", "*.md"),
    ({"*": "deny", "*.md": "ask", "a.md": "allow"}, "ask", "*.md"),
)
def test_of_a_tool_the_rule_is_named_that_a_call_of_it_names(
    specs: dict[str, ToolSpec], rules: dict[str, Kind], kind: str, pattern: str
) -> None:
    mode = CATALOG["code"].model_copy(update={"permissions": {"write_file": rules}})
    of_all = verdict(mode, specs["write_file"], None, Approvals.MANUAL)
    assert of_all.kind == kind
    assert f"rule {pattern!r} for write_file" in of_all.reason


@pytest.mark.parametrize(
    "line", ["true;" * 5000 + "rm x", "x " * 50_000, "x" * 50_000], ids=["commands", "words", "one"]
)
def test_a_line_made_to_be_long_asks(specs: dict[str, ToolSpec], line: str) -> None:
    rules = {"execute_command": {"*": "allow", "rm *": "deny"}}
    mode = CATALOG["code"].model_copy(update={"permissions": rules})
    command = specs["execute_command"]
    assert verdict(mode, command, {"command": line}, Approvals.AUTO).kind == "ask"
