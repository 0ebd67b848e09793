"""Running commands in the real sandbox, as ``execute_command`` does."""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from modeshift.sandbox.bubblewrap import find_bubblewrap
from modeshift.sandbox.scan import Scan, Scanner
from modeshift.tools.processes.background import Calling, current_calling
from modeshift.tools.processes.process import Limits
from modeshift.tools.processes.sandboxes import (
    Commands,
    NoSandbox,
    Sandbox,
    SandboxOptions,
    find_sandbox,
)
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog

PROBLEM = find_bubblewrap().problem
needs_sandbox = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
REPOSITORY = "git init -q; git config user.email a@b.c; git config user.name a"
READ_ONLY = "[this command could not change the workspace]"
Run = Callable[..., Coroutine[Any, Any, str]]


def scan(root: Path) -> Scan:
    """What is there, all of it read anew."""
    return Scanner(root, finds_secrets=True).scan(Workspace(root))


def sandbox(**options: Any) -> Sandbox:
    machines = find_sandbox(SandboxOptions(**options))
    assert not isinstance(machines, NoSandbox)
    return machines


def runner(workspace: Path, limits: Limits | None = None, **options: Any) -> Run:
    """Runs a command in a mode that ``edits`` everything, or unasked, where it only ``looks``.

    ``closed`` is the read-only sandbox, whatever else is so.
    """
    commands = Commands(sandbox(**options), limits or Limits())
    tool = build_toolbox(Workspace(workspace, heeds_ignore_files=True), load_catalog(), commands)[
        "execute_command"
    ]

    async def run(
        command: str,
        *,
        edits: bool = True,
        looks: bool = False,
        closed: bool = False,
        emit: Any = print,
        **args: Any,
    ) -> str:
        calling = Calling(edits and not looks, looks, emit, is_closed_off=closed)
        before = current_calling.set(calling)
        try:
            return str(await tool.runnable.ainvoke({"command": command, **args}))
        finally:
            current_calling.reset(before)

    return run


def write(folder: Path, *names: str, text: str = "") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def read_tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that a command might change: names, kinds, permissions, contents, targets of links."""

    def read(path: Path) -> bytes:
        if path.is_symlink():
            return bytes(path.readlink())
        return path.read_bytes() if path.is_file() else b""

    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, read(path))
        for path in sorted(folder.rglob("*"))
    }


def list_descriptors() -> set[int]:
    listed = os.listdir("/proc/self/fd")  # one of them is the listing's own
    return {int(name) for name in listed if os.path.lexists(f"/proc/self/fd/{name}")}
