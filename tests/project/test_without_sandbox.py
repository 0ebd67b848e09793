"""``tools/sandbox`` can be deleted, with its tests and one line: the rest passes, commands ask."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graph.settings import ROOT

DELETED = ("tools/sandbox", "tests/tools/sandbox")
SELECTED = "test_a_command or git_runs or links or files_to_open or imported_by_nobody"
ASKS = """
from pathlib import Path
from graph.configuration.loading import AgentLoader
from graph.settings import Settings
from modes.policy import Approvals, verdict

deps = AgentLoader(Settings(workspace=Path("modes"), approvals="auto", sandbox="auto")).deps()
tool = deps.toolbox["execute_command"]
found = verdict(deps.catalog["code"], tool.spec, {"command": "git status"}, Approvals.AUTO)
print(f"{found.kind}: {found.reason}")
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project without the folder, its tests, and the line that names it."""
    copy = tmp_path_factory.mktemp("without") / "project"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0"):
        if name and not name.startswith(DELETED) and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    if (ROOT / ".mypy_cache").is_dir():  # from `make check`: most of it holds here too
        shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
    lines = {
        (file, line)
        for folder in ("modes", "prompts", "tools", "graph", "doors", "benchmarks")
        for file in (copy / folder).rglob("*.py")
        for line in file.read_text().splitlines(keepends=True)
        if "tools.sandbox" in line or "tools/sandbox" in line
    }
    assert len(lines) == 1
    ((file, line),) = lines
    file.write_text(file.read_text().replace(line, ""))
    return copy


def run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "SANDBOX": "auto", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command],
        check=False,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("-m", "ruff", "check", "."), "All checks passed"),
        (("-m", "ruff", "format", "--check", "."), "already formatted"),
        (("-m", "mypy"), "Success"),
        (("-c", "from importlinter.cli import lint_imports_command as run; run()"), "0 broken"),
        (("-m", "pytest", "-q", "tests/tools", "tests/project", "-k", SELECTED), " passed"),
    ],
)
def test_the_remaining_checks_pass(copy: Path, command: tuple[str, ...], shown: str) -> None:
    assert shown in run(copy, *command)


def test_every_command_asks(copy: Path) -> None:
    assert run(copy, "-c", ASKS).startswith("ask: runs a command, not sandboxed")
    assert "every one asks: this project has no sandbox" in run(copy, "-m", "doors.commands.doctor")
