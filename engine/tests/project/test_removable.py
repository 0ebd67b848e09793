"""The editor's door and the sandbox can be deleted; what remains passes its checks."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness.clone import REMOVABLE, change, copy_project
from tests.harness.root import ROOT

IS_ALLOWED = """
from pathlib import Path
from modeshift.graph.configuration.loading import AgentLoader
from modeshift.graph.configuration.settings import Settings
from modeshift.modes.policy import Approvals, verdict

deps = AgentLoader(Settings(workspace=Path("modes"), approvals="auto", sandbox="auto")).deps()
spec = deps.toolbox["execute_command"].spec
found = verdict(deps.catalog["code"], spec, {"command": "git status"}, Approvals.AUTO)
print(f"{found.kind}: {found.reason}")
"""


class Part(NamedTuple):
    """What is deleted, and what is tried then."""

    folder: str
    file: str
    line: str
    """The line of ``file`` that names it, the only one in the code that remains."""
    tests: tuple[str, ...]
    """Of what remains, those that show that an agent without it works."""
    tried: dict[str, str]
    """What a piece of Python prints then."""


OF_ALL = [f"tests/project/test_{name}.py" for name in ("mutants", "readme", "rooms", "stats")]
PARTS = {
    "editor": Part(
        "doors/editor",
        "pyproject.toml",
        'modeshift-acp = "modeshift.editor.main:main"\n',
        ("tests/graph/test_turns.py",),
        {"from modeshift.__main__ import main; main(['modes'])": "switch_mode"},
    ),
    "sandbox": Part(
        "tools/sandbox",
        "tools/processes/sandboxes.py",
        '    "modeshift.sandbox.sandbox:find_sandbox",\n',
        ("tests/tools/test_tools.py", "tests/tools/processes"),
        {
            IS_ALLOWED: "ask: runs a command, not sandboxed",
            "from modeshift.__main__ import main; main(['doctor'])": "has no sandbox",
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_what_remains_passes_its_checks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = PARTS[name]
    assert part.folder in REMOVABLE
    if not (ROOT / part.folder).is_dir():
        pytest.skip(f"this clone has no {part.folder}")
    folders = (f"{part.folder}/", f"tests/{part.folder}/")
    copy_project(tmp_path, wanted=lambda file: not file.startswith(folders))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    if (ROOT / ".mypy_cache").is_dir():  # takes most of the time off
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / ".mypy_cache")
    change(tmp_path / part.file, part.line, "")
    for top in ("modes", "prompts", "tools", "graph", "doors", "benchmarks"):
        for file in (tmp_path / top).rglob("*.py"):
            assert part.folder.replace("/", ".") not in file.read_text(), file
    monkeypatch.setenv("WRITE", "1")  # as make renew does
    for command in (
        (sys.executable, "-m", "benchmarks.stats"),
        (program("ruff"), "check", "."),
        (program("mypy"),),
        (program("lint-imports"),),
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_ALL, *part.tests),
    ):
        run(tmp_path, *command)
    monkeypatch.setenv("SANDBOX", "auto")
    for code, shown in part.tried.items():
        assert shown in run(tmp_path, sys.executable, "-c", code)
    if name == "editor":
        command = ("make", "--old-file=.venv/.ready", "acp")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "has been removed: there is no doors/editor" in done.stderr


def program(name: str) -> str:
    """Beside the Python that runs this."""
    return str(Path(sys.executable).with_name(name))


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
