"""A clone with changes of its own merges this version: one of 0.2 in the field, and a new one."""

import shutil
import tomllib
from pathlib import Path

import pytest
from loop_recipes import RECIPES
from repository import ROOT, copy_project
from test_loop_recipes import follow

from tests.harness.clone import change, git
from tests.harness.programs import run, run_in_clone

pytestmark = pytest.mark.slow
FIELD = "ce5d9bbb"
"""What owners of 0.2 have cloned."""
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
NODE = '''

async def shuffle(step: Step) -> Update:
    """A node of our own."""
    return step.go_on()
'''


def commit(folder: Path, text: str) -> None:
    for command in (("add", "-A"), ("commit", "-qm", text)):
        done = git(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr


def make_own_changes(clone: Path) -> None:
    """The typical ones: README, a mode, its prompt, a tool, words of the frame, a node, a name."""
    (clone / "README.md").write_text("# Luck\n")
    (clone / "modes/gambler.yaml").write_text(MODE)
    (clone / "prompts/gambler.md").write_text("Roll often.\n")
    (clone / "tools/dice.py").write_text(TOOL)
    last = '    (IN_EVERY_MODE, "tools.conversation'
    change(clone / "tools/__init__.py", last, '    ("dice", "tools.dice:dice_tools"),\n' + last)
    for name, text in (("prompts/_base.md", "\nBe lucky.\n"), ("graph/nodes.py", NODE)):
        with (clone / name).open("a") as file:
            file.write(text)
    change(clone / "pyproject.toml", 'name = "my-agent"', 'name = "luckshift"')
    yours = "    # Yours, one a line:\n"
    change(clone / "pyproject.toml", yours, f'{yours}    "luck>=1",\n')
    own = clone / "cassettes/test_luck/test_it.yaml"
    own.parent.mkdir()
    theirs = clone / "cassettes/test_conversations/test_a_rejected_switch.yaml"
    own.write_bytes(theirs.read_bytes())
    for name in ("modes/debug.yaml", "prompts/debug.md", "docs"):
        assert git(clone, "rm", "-rqf", name).returncode == 0
    commit(clone, "Our own")


def test_a_clone_of_the_field_comes_over(tmp_path: Path) -> None:
    if git(ROOT, "cat-file", "-e", f"{FIELD}^{{commit}}").returncode:
        pytest.skip("the history of 0.2 is not here (a shallow clone)")
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    assert git(tmp_path, "clone", "-q", str(ROOT), str(clone)).returncode == 0
    assert git(clone, "checkout", "-qb", "luck", FIELD).returncode == 0
    make_own_changes(clone)
    assert git(tmp_path, "clone", "-q", str(ROOT), str(upstream)).returncode == 0
    copy_project(upstream)  # as it is now, not as it was committed
    if git(upstream, "status", "--porcelain").stdout:
        commit(upstream, "Now")
    upgrade = run("/bin/sh", upstream / ".ci/upgrade", upstream, cwd=clone)
    assert "modes/debug.yaml: you removed it, it stays removed" in upgrade.stdout
    left = set(git(clone, "diff", "--name-only", "--diff-filter=U").stdout.split())
    assert left <= {"README.md", "pyproject.toml", "requirements.lock"}
    for name in left:
        assert git(clone, "checkout", "--ours" if name == "README.md" else "--theirs", name)
    check_what_is_ours(clone)


def test_a_later_version_comes_over(tmp_path: Path) -> None:
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    upstream.mkdir()
    copy_project(
        upstream, wanted=lambda name: not name.startswith(("engine/tests/", ".ci/starter/"))
    )
    assert git(upstream, "init", "-q", "-b", "main").returncode == 0
    commit(upstream, "The first version")
    assert git(tmp_path, "clone", "-q", str(upstream), str(clone)).returncode == 0
    make_own_changes(clone)
    for recipe in RECIPES:
        follow(recipe, clone)
    commit(clone, "More of our own")
    change(upstream / "engine/pyproject.toml", 'version = "0.2.0"', 'version = "0.2.1"')
    for file in (upstream / "engine/modeshift").rglob("*.py"):
        with file.open("a") as module:
            module.write("\n\ndef added_by_upstream() -> None:\n    ...\n")
    for name in ("modes/debug.yaml", "README.md"):
        with (upstream / name).open("a") as later:
            later.write("\n# A later word\n")
    (upstream / "README.md").write_text((ROOT / "README.md").read_text())
    commit(upstream, "A later version")
    (clone / "untracked.txt").touch()
    refused = run("/bin/sh", ".ci/upgrade", upstream, cwd=clone)
    assert "not committed: commit them first" in refused.stderr
    (clone / "untracked.txt").unlink()
    assert "Say where" in run("/bin/sh", ".ci/upgrade", cwd=clone).stderr
    shutil.copytree(clone, stranger := tmp_path / "stranger", ignore=shutil.ignore_patterns(".git"))
    assert git(stranger, "init", "-q").returncode == 0
    commit(stranger, "A history of its own")
    refused = run("/bin/sh", ".ci/upgrade", upstream, cwd=stranger)
    assert "unrelated histories" in refused.stderr
    assert "docs/own/upgrading.md says what to do" in refused.stderr
    upgrade = run("/bin/sh", ".ci/upgrade", upstream, cwd=clone)
    assert upgrade.returncode == 0, upgrade.stdout + upgrade.stderr
    assert upgrade.stdout.splitlines() == [
        "modes/debug.yaml: you removed it, it stays removed",
        "merged; next: make check",
    ]
    check_what_is_ours(clone)
    assert "def sign_off(" in (clone / "graph/nodes.py").read_text()


def check_what_is_ours(clone: Path) -> None:
    data = tomllib.loads((clone / "pyproject.toml").read_text())
    if data["project"]["name"] != "my-agent":  # else its owner has a conflict to mend
        assert "luck>=1" in data["project"]["dependencies"]
    assert (clone / "README.md").read_text() == "# Luck\n"
    assert not (clone / "modes/debug.yaml").exists()
    assert not (clone / "docs").exists() or "docs" in git(clone, "status", "--porcelain").stdout
    command = ("modeshift", "modes", "--mode", "gambler", "--prompt")
    places = {"CONFIG_FOLDER": str(clone.parent), "MODES_FOLDER": str(clone / "modes")}
    shown = " ".join(run_in_clone(clone, *command, **places).split())
    for text in ("(modes/gambler.yaml)", "roll_dice allow", "Roll often.", "Be lucky."):
        assert text in shown
