"""Copies of this project as a user has it: what git knows, and nothing else."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.harness.root import ROOT

WHO = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/nowhere/gitconfig",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, with nobody's settings."""
    return subprocess.run(
        ["git", *command],
        cwd=folder,
        env={**os.environ, **WHO},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_project(folder: Path, *, wanted: Callable[[str], bool] = lambda _: True) -> None:
    """Copy the files that git knows, or would after ``git add``; ``wanted`` gets their names."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    for name in filter(None, listed.stdout.split("\0")):
        if wanted(name) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def change(file: Path, old: str, new: str) -> None:
    """Replace a text that must be there once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} has {text.count(old)} times {old!r}"
    file.write_text(text.replace(old, new), encoding="utf-8")
