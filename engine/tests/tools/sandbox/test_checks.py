"""``make doctor`` about the sandbox: it tries what it says, and tells what is missing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from modeshift.sandbox.bubblewrap import find_bubblewrap
from modeshift.sandbox.sandbox import TRIED
from modeshift.tools.processes.sandboxes import (
    NoSandbox,
    SandboxCheck,
    SandboxOptions,
    find_sandbox,
)

needs_bubblewrap = pytest.mark.skipif(
    bool(find_bubblewrap().problem), reason=find_bubblewrap().problem
)


def check(workspace: Path, options: SandboxOptions | None = None) -> list[SandboxCheck]:
    sandbox = find_sandbox(options)
    assert not isinstance(sandbox, NoSandbox), sandbox
    return list(sandbox.check(workspace))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a program of that name can be put; bubblewrap is looked for again."""
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    find_bubblewrap.cache_clear()
    yield program
    find_bubblewrap.cache_clear()


def make_program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "bubblewrap is not installed"),
        ("echo an old one", "an old one is too old: it has no --ro-bind-fd"),
        (  # as on a machine without user namespaces
            'case "$*" in *help*) echo --ro-bind-fd; exit;; esac\n'
            "echo 'setting up uid map: Permission denied' >&2; exit 1",
            "bubblewrap does not work here: setting up uid map: Permission denied",
        ),
    ],
)
def test_a_program_that_does_not_work(
    fake: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, problem: str
) -> None:
    if script is None:
        monkeypatch.setenv("PATH", str(fake.parent))
    else:
        make_program(fake, script)
    sandbox = find_sandbox()
    assert isinstance(sandbox, NoSandbox)
    assert problem in sandbox.problem
    assert ("AppArmor" if script else "apt install bubblewrap") in sandbox.remedies[0]


def test_what_does_not_hold_is_told(fake: Path, workspace: Path) -> None:
    """A program that starts what is tried first, and nothing else."""
    make_program(
        fake,
        'case "$*" in --help) echo --ro-bind-fd;; --version) echo fake;; *"; true") ;; '
        "*) exit 1;; esac",
    )
    tried = [row.status for row in check(workspace) if "tried" in row.text]
    assert set(tried) == {"no"}


@needs_bubblewrap
def test_what_holds_is_tried(workspace: Path) -> None:
    tried = [row.status for row in check(workspace) if "tried just now" in row.text]
    assert tried == ["yes"] * len(TRIED)
    assert not list(workspace.iterdir())
    told = [row.text.strip() for row in check(workspace, SandboxOptions(has_network=True))]
    assert "the network is within reach: COMMAND_NETWORK=true" in told


@needs_bubblewrap
def test_hard_links_that_lead_outside(workspace: Path, tmp_path: Path) -> None:
    def find_row() -> SandboxCheck:
        return next(row for row in check(workspace) if "hard link" in row.text)

    (tmp_path / "cached").touch()
    text = "  no file outside can be changed by a hard link in the workspace"
    assert find_row() == SandboxCheck("yes", text)
    (workspace / "linked").hardlink_to(tmp_path / "cached")
    assert find_row() == SandboxCheck("yes", f"{text}; 1 are read-only")
    (workspace / ".venv").mkdir()
    (workspace / ".venv/x").hardlink_to(tmp_path / "cached")
    row = find_row()
    assert row.status == "no"
    assert "can change files outside by 1 hard links in the workspace" in row.text
    assert "'.venv/x'" in row.details[0]
