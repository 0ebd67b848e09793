"""Clones in folders of their own, and git in them."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.harness.root import TEMPLATE

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


def make_repository(folder: Path, **files: str) -> None:
    """A repository of one commit, with these files."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        done = git(folder, *words)
        assert done.returncode == 0, done.stderr


def copy_template(folder: Path) -> None:
    """A clone of its own: the engine's small one, without what a run has left in it."""
    left = shutil.ignore_patterns("__pycache__", ".*", "workspace")
    shutil.copytree(TEMPLATE, folder, ignore=left, dirs_exist_ok=True)


def change(file: Path, old: str, new: str) -> None:
    """Replace a text that must be there once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} has {text.count(old)} times {old!r}"
    file.write_text(text.replace(old, new), encoding="utf-8")
