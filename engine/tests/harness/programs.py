"""Programs that a test runs to their end, in a folder and with the modules of a clone."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.harness import prefork
from tests.harness.root import ENGINE, TEMPLATE


def run(
    *command: str | Path, cwd: Path = TEMPLATE, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program; it has not to succeed."""
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def run_well(
    *command: str | Path, cwd: Path = TEMPLATE, env: Mapping[str, str] | None = None
) -> str:
    """Run a program that has to succeed; what it prints."""
    done = run(*command, cwd=cwd, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_in_clone(clone: Path, *module: str, folder: str = ".", **variables: str) -> str:
    """Run ``python -m *module`` with the clone's graph and tools, and its engine if it has one."""
    path = os.pathsep.join([str(clone), str(clone / "engine"), str(ENGINE)])
    env = {**os.environ, "PYTHONPATH": path, **variables}
    if (clone / "engine").exists():
        return run_well(sys.executable, "-m", *module, cwd=clone / folder, env=env)
    done = prefork.run(*module, cwd=clone / folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
