"""The rows of ``verdicts.yaml``, judged as the graph judges them."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from graph.approvals.judging import CallContext, judge
from graph.configuration.loading import AgentLoader
from graph.deps import AgentDeps
from graph.settings import Settings
from modes.errors import InvalidCallError
from modes.policy import Approvals
from tests.harness.place import in_sandbox

SETS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("verdicts.yaml").read_text(encoding="utf-8")
)
ROWS = [
    pytest.param(number, row, id=f"{number}-{'-'.join(map(str, row))}")
    for number, one in enumerate(SETS)
    for row in one["rows"]
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verdicts")


@cache
def harness_of(folder: Path, number: int) -> AgentDeps:
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
    deps = AgentLoader(
        Settings(workspace=workspace, config_folder=home, trust_workspace=True, model="offline")
    ).deps()
    assert not [notice for notice in deps.notices if "browser" not in notice]
    return in_sandbox(deps) if SETS[number].get("sandbox", True) else deps


def arguments(deps: AgentDeps, tool: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, str):
        return dict(given)
    try:
        spec = deps.toolbox[tool].spec
    except InvalidCallError:
        return {"path": given}
    if spec.effect.switches_mode:
        return {"mode_slug": given, "reason": "because"}
    rest = {"write_file": {"content": "x"}, "edit_file": {"old": "x", "new": "y"}}.get(tool, {})
    return {spec.command or spec.paths[0]: given, **rest}


@pytest.mark.parametrize(("number", "row"), ROWS)
async def test_row(folder: Path, number: int, row: list[Any]) -> None:
    mode, tool, given, approvals, expected = row
    deps = harness_of(folder, number)
    context = CallContext(deps.catalog[mode], Approvals(approvals))
    args = arguments(deps, tool, given)
    judged = await judge(deps, context, {"name": tool, "args": args, "id": "1"})
    found = judged.verdict
    is_error = found.kind == "deny" and expected not in ("allow", "ask", "deny")
    assert (found.error.__name__ if is_error else found.kind) == expected, found.reason
    assert found.reason


def test_there_are_enough_rows() -> None:
    assert len(ROWS) >= 150


def test_no_row_is_there_twice() -> None:
    ids = [row.id for row in ROWS]
    assert sorted(set(ids)) == sorted(ids)  # type: ignore[type-var]  # no id is None
