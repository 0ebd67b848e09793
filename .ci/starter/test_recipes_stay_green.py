"""Every recipe of README and docs leaves renew, test and check green, and touches nothing else."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from repository import ROOT, copy_project
from test_loop_recipes import follow as follow_loop
from test_machine_recipes import follow as follow_machine
from test_recipe import follow as follow_tool
from test_recipe import read_recipe

from tests.harness.clone import git

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
ALL = (*FOLLOW,)
GROUPS = [("research", "check", "plan"), ("tools", "ticket", "prove"), ("sign_off", "fact")]
"""No two of one change the same folder, so that none mends what another leaves red."""


class Clone:
    """One of the owner's, with this repository's engine and environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        copy_project(folder, wanted=lambda name: not name.startswith(("engine/", ".ci/starter/")))
        (folder / "engine").symlink_to(ROOT / "engine")
        (folder / ".venv").mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            (folder / ".venv" / name).symlink_to(ROOT / ".venv" / name)
        files = ("requirements.lock", "pyproject.toml", "engine/pyproject.toml")
        contents = b"".join((folder / name).read_bytes() for name in files)
        cksum = subprocess.run(["cksum"], input=contents, capture_output=True, check=True)
        (folder / ".venv/.ready").write_text(f"{cksum.stdout.decode()} test check\n")
        known = ".mypy_cache"  # of the libraries and the engine, when make check has been here
        if (ROOT / known).exists():
            shutil.copytree(ROOT / known, folder / known)
        self.commit()

    def commit(self) -> None:
        for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "now")):
            assert git(self.folder, *command).returncode == 0

    def make(self, *targets: str, pytest: str = "") -> None:
        """Run them, with nothing of these tests in the environment, and one test at a time."""
        env = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "MODES_FOLDER", "SANDBOX", "CI")
        }
        done = subprocess.run(
            ["make", f"PYTEST=.venv/bin/pytest {pytest}", *targets],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def list_changes(self) -> set[str]:
        """The files that are not as they were committed."""
        listed = git(self.folder, "status", "--porcelain", "-uall", "--no-renames").stdout
        return {line[3:] for line in listed.splitlines()}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


def test_the_groups_have_each_recipe() -> None:
    assert sorted(chain(*GROUPS)) == sorted(FOLLOW)


@pytest.mark.parametrize("names", [*GROUPS, ALL], ids="+".join)
def test_a_recipe_leaves_all_green(names: Sequence[str], clone: Clone) -> None:
    for step in [names] if names == ALL else [[name] for name in names]:
        for name in step:
            FOLLOW[name](clone.folder)
        own = clone.list_changes()
        clone.make("renew")
        allowed = re.compile("|".join(DERIVED[name] for name in step))
        written = clone.list_changes() - own
        assert [file for file in sorted(written) if not allowed.fullmatch(file)] == []
        clone.commit()
    clone.make("modes", "check")
    clone.make("test", pytest="--collect-only")  # which check has run
    assert clone.list_changes() == set()


@pytest.mark.parametrize("mode", ["ask", "architect", "code", "debug", "orchestrator"])
def test_any_mode_can_be_removed(mode: str, clone: Clone) -> None:
    clone.make("remove", f"MODE={mode}")
    clone.make("check")
    assert not [file for file in clone.folder.rglob(f"{mode}.*") if "engine" not in file.parts]


def test_readme_docs_and_pictures_are_the_owners(clone: Clone) -> None:
    (clone.folder / "README.md").write_text("# Ours\n\nTwo lines.\n")
    owners = ("docs", "LICENSE", "CONTRIBUTING.md", "SECURITY.md")
    assert git(clone.folder, "rm", "-rqf", *owners).returncode == 0
    clone.make("renew", "check")
