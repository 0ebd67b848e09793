"""Every recipe of README and docs leaves renew, test and check green, and touches nothing else."""

import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from repository import ROOT, copy_project, lend_environment
from test_loop_recipes import follow as follow_loop
from test_machine_recipes import follow as follow_machine
from test_recipe import follow as follow_tool
from test_recipe import read_recipe
from test_wheel import NOT_THEIRS, ONE_AT_A_TIME

from tests.harness.clone import git
from tests.harness.programs import run

pytestmark = pytest.mark.slow
Follow = Callable[[Path], object]
FOLLOW: dict[str, Follow] = {
    "research": lambda clone: follow_tool(read_recipe("README.md"), clone),
    "tools": lambda clone: follow_tool(
        read_recipe("docs/own/tools.md") + read_recipe("docs/own/cassettes.md"), clone
    ),
    **{name: partial(follow_loop, name) for name in ("check", "ticket", "sign_off")},
    **{name: partial(follow_machine, name) for name in ("plan", "prove", "fact")},
}
DRAWN = r"docs/(\w+/)?modes\.md"
"""The diagram of the machine."""
RECORDED = r"cassettes/test_conversations/.*"
"""What the loop does beside: a run of the tests, a question."""
TOLD = r"tests/snapshots/modes/.*"
"""Where a mode leads is part of its words."""
DERIVED = {
    "research": f"README.md|{DRAWN}|tests/snapshots/(modes/research.md|tools/fetch_url.json)",
    "tools": "tests/snapshots/tools/(count_words|roll_dice).json|cassettes/test_words/.*",
    "check": f"{DRAWN}|{RECORDED}",
    "sign_off": f"{DRAWN}|{RECORDED}",
    "ticket": RECORDED,
    "plan": f"{DRAWN}|{RECORDED}|{TOLD}",
    "prove": f"{DRAWN}|{RECORDED}|{TOLD}",
    "fact": "nothing",
}
"""What may be written beside the recipe's own files."""
LINT = {"PYTEST": ":", "MODESHIFT": ":"}
"""What is left out of ``make check`` for a recipe alone: ``renew`` has run its recorded tests and
snapshots, and the test of all recipes together runs the rest."""


class Clone:
    """One of the owner's, with this repository's engine and environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        copy_project(folder, wanted=lambda name: not name.startswith(("engine/", ".ci/starter/")))
        (folder / "engine").symlink_to(ROOT / "engine")
        lend_environment(folder)
        known = ".mypy_cache"  # of the libraries and the engine, when make check has been here
        if (ROOT / known).exists():
            shutil.copytree(ROOT / known, folder / known)
        self.git("init", "-q")
        self.commit()

    def git(self, *command: str) -> str:
        done = git(self.folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "now")

    def make(self, *targets: str, **variables: str) -> None:
        """Run them, with nothing of these tests in the environment."""
        env = {name: value for name, value in os.environ.items() if name not in NOT_THEIRS}
        words = [f"{name}={value}" for name, value in variables.items()]
        done = run("make", ONE_AT_A_TIME, *words, *targets, cwd=self.folder, env=env)
        assert done.returncode == 0, done.stdout + done.stderr

    def list_changes(self) -> set[str]:
        """The files that are not as they were committed."""
        listed = self.git("status", "--porcelain", "-uall", "--no-renames")
        return {line[3:] for line in listed.splitlines()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    clone = Clone(tmp_path_factory.mktemp("kept") / "clone")
    clone.git("tag", "begin")
    return clone


@pytest.fixture
def clone(kept: Clone) -> Clone:
    """As it was in the beginning, but for what tools have cached."""
    kept.git("reset", "-q", "--hard", "begin")
    kept.git("clean", "-fdq")
    return kept


def follow(clone: Clone, *names: str) -> None:
    """And renew what is derived; nothing else is written than what the recipes say."""
    for name in names:
        FOLLOW[name](clone.folder)
    own = clone.list_changes()
    clone.make("renew")
    allowed = re.compile("|".join(DERIVED[name] for name in names))
    written = clone.list_changes() - own
    assert [file for file in sorted(written) if not allowed.fullmatch(file)] == []


def test_all_recipes_together_leave_all_green(clone: Clone) -> None:
    follow(clone, *FOLLOW)
    clone.commit()
    clone.make("modes", "check")
    clone.make("test", PYTEST=".venv/bin/pytest --collect-only")  # which check has run
    assert clone.list_changes() == set()


@pytest.mark.parametrize("name", FOLLOW)
def test_a_recipe_writes_what_it_says(name: str, clone: Clone) -> None:
    follow(clone, name)
    clone.make("check", **LINT)


@pytest.mark.parametrize("mode", ["ask", "architect", "code", "debug", "orchestrator"])
def test_any_mode_can_be_removed(mode: str, clone: Clone) -> None:
    clone.make("remove", f"MODE={mode}")
    clone.make("check")
    names = clone.git("ls-files", "-co", "--exclude-standard").splitlines()
    left = [name for name in names if (clone.folder / name).exists()]
    assert not [name for name in left if Path(name).name.startswith(f"{mode}.")]


def test_readme_docs_and_pictures_are_the_owners(clone: Clone) -> None:
    (clone.folder / "README.md").write_text("# Ours\n\nTwo lines.\n")
    clone.git("rm", "-rqf", "docs", "LICENSE", "CONTRIBUTING.md", "SECURITY.md")
    clone.make("renew", "check", MODESHIFT=":")  # no page is what the proof is made of
