"""The editor's door and the sandbox can be deleted; what remains passes its checks."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from graph.settings import ROOT
from tests.harness.clone import change, copy_project


class Part(NamedTuple):
    """What is deleted, and what is tried then."""

    folders: tuple[str, ...]
    file: str
    line: str
    """The line of ``file`` that names it."""
    tests: tuple[str, ...]
    """Of what remains, those that show that an agent without it works."""


PARTS = {
    "editor": Part(
        ("doors/editor/", "tests/doors/editor/"),
        "pyproject.toml",
        'modeshift-acp = "doors.editor.main:main"\n',
        (
            "tests/doors/commands/test_reports.py",
            "tests/graph/test_turns.py",
        ),
    ),
    "sandbox": Part(
        ("tools/sandbox/", "tests/tools/sandbox/"),
        "tools/processes/sandboxes.py",
        '    "tools.sandbox.sandbox:find_sandbox",\n',
        ("tests/doors/commands/test_reports.py", "tests/tools/test_tools.py"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_what_remains_passes_its_checks(name: str, tmp_path: Path) -> None:
    part = PARTS[name]
    copy_project(tmp_path, wanted=lambda file: not file.startswith(part.folders))
    change(tmp_path / part.file, part.line, "")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    if (ROOT / ".mypy_cache").is_dir():  # takes most of the time off
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / ".mypy_cache")
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *part.tests)
    for command in ((program("mypy"),), (program("lint-imports"),), tests):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def program(name: str) -> str:
    """Beside the Python that runs this."""
    return str(Path(sys.executable).with_name(name))
