"""The repository, and copies of it as a user has it: what git knows, and nothing else."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.harness.clone import git

ROOT = Path(__file__).parents[2]


def has_clone(name: str) -> bool:
    """Whether a file is the owner's, and not the engine's."""
    return not name.startswith("engine/")


def copy_project(folder: Path, *, wanted: Callable[[str], bool] = lambda _: True) -> None:
    """Copy the files that git knows, or would after ``git add``; ``wanted`` gets their names."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    for name in filter(None, listed.stdout.split("\0")):
        if wanted(name) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def lend_environment(clone: Path) -> None:
    """Have a clone use the repository's, as if ``make check`` had set it up there."""
    (clone / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (clone / ".venv" / name).symlink_to(ROOT / ".venv" / name)
    names = ("requirements.lock", "pyproject.toml", "engine/pyproject.toml")
    files = [clone / name for name in names if (clone / name).exists()]
    contents = b"".join(file.read_bytes() for file in files)
    cksum = subprocess.run(["cksum"], input=contents, capture_output=True, check=True)
    (clone / ".venv/.ready").write_text(f"{cksum.stdout.decode()} test check\n")
