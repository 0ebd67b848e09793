"""``describe_environment``: where the agent works, as the model is told."""

import asyncio
import platform
import re
from contextlib import suppress
from datetime import UTC, datetime

from modeshift.modes.errors import ModelError
from modeshift.modes.plain_text import to_one_line
from modeshift.tools.calls.toolbox import Toolbox
from modeshift.tools.processes.calling import Calling
from modeshift.tools.processes.process import Limits
from modeshift.tools.processes.sandboxes import Command, Sandbox
from modeshift.tools.workspace.workspace import Workspace

GIT_SECONDS = 3
_GIT = "git status --porcelain --untracked-files=no"
_CHANGE = re.compile(r"[ MTADRCU]{2} ")
_HEAD = "ref: refs/heads/"
_LONGEST = 1000
_PLAIN = re.compile(r"[\w.+#/-]{1,100}")


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
    """From git's own file: starting git could run what a hostile repository names.

    The file may say anything, and what is said here counts as ours: only a plain name is told.
    """
    try:
        with workspace.opened_on_disk(".git/HEAD") as file:
            head = file.read(_LONGEST).decode("utf-8", "replace").strip()
    except (ModelError, OSError):
        return None
    if not head.startswith(_HEAD):
        return "no branch"
    name = head.removeprefix(_HEAD)
    return f"branch {name}" if _PLAIN.fullmatch(name) else "a branch"


async def _describe_changes(workspace: Workspace, sandbox: Sandbox | None) -> str:
    """Whether there are changes that are not committed; empty where git cannot be run safely."""
    if sandbox is None:
        return ""
    command = Command(_GIT, ".", GIT_SECONDS)
    with suppress(TimeoutError, ModelError, OSError):
        async with asyncio.timeout(GIT_SECONDS):
            output = await sandbox.run(workspace, command, Limits(), Calling(is_read_only=True))
        if "[exit code 0]" in output:
            # Among what git warns of.
            has_changes = any(map(_CHANGE.match, output.splitlines()))
            return ", with changes that are not committed" if has_changes else ", clean"
    return ""
