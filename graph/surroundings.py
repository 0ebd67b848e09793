"""``describe_environment``: where the agent works, as the model is told."""

import asyncio
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime

from modes.errors import ModelError
from modes.plain_text import to_one_line
from tools.calling import Calling
from tools.processes.process import Limits
from tools.processes.sandboxes import Command, Sandbox
from tools.toolbox import Toolbox
from tools.workspace.workspace import Workspace

GIT_SECONDS = 3
_GIT = "git status --porcelain --untracked-files=no"
_HEAD = "ref: refs/heads/"


async def describe_environment(toolbox: Toolbox) -> str:
    """The workspace, the system, the shell, the date, and git's branch, as Markdown."""
    workspace, sandbox = toolbox.workspace, toolbox.sandbox
    lines = [
        f"Workspace: {to_one_line(str(workspace.root))}",
        f"Operating system: {platform.system()} {platform.release()} ({platform.machine()})",
        f"Commands: run by /bin/sh, {_describe_sandbox(sandbox)}",
        f"Date: {datetime.now(UTC).astimezone():%Y-%m-%d}",
    ]
    if branch := await asyncio.to_thread(_read_branch, workspace):
        lines.append(f"Git: {branch}{await _describe_changes(workspace, sandbox)}")
    return "\n".join(f"- {line}" for line in lines)


def _describe_sandbox(sandbox: Sandbox | None) -> str:
    if sandbox is None:
        return "not in a sandbox"
    return f"in a sandbox with{'' if sandbox.has_network else 'out'} network"


def _read_branch(workspace: Workspace) -> str | None:
    """From git's own file: starting git could run what a hostile repository names."""
    try:
        # It may be a pipe that nobody writes to.
        file = os.open(workspace.root / ".git" / "HEAD", os.O_RDONLY | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            head = opened.read(1000).decode("utf-8", "replace")
    except OSError:
        return None
    name = head.strip().removeprefix(_HEAD)
    return f"branch {to_one_line(name, 200)!r}" if head.startswith(_HEAD) else "no branch"


async def _describe_changes(workspace: Workspace, sandbox: Sandbox | None) -> str:
    """Whether there are changes that are not committed; empty where git cannot be run safely."""
    if sandbox is None:
        return ""
    command = Command(_GIT, ".", GIT_SECONDS)
    with suppress(TimeoutError, ModelError, OSError):
        async with asyncio.timeout(GIT_SECONDS):
            output = await sandbox.run(workspace, command, Limits(), Calling(is_read_only=True))
        if "[exit code 0]" in output:
            is_clean = output.startswith("[exit code 0]")
            return ", clean" if is_clean else ", with changes that are not committed"
    return ""
