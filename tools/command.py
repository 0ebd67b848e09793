"""The ``command`` group: run a program in the workspace."""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from modes.errors import ToolFailedError
from tools.calling import calling
from tools.deps import ToolDeps
from tools.sandbox import git
from tools.sandbox.bubblewrap import Sandbox
from tools.sandbox.closed_folders import ROOT
from tools.sandbox.hard_links import few_linked_outside
from tools.sandbox.limits import Limits
from tools.sandbox.process import run
from tools.sandbox.scan import Closed, Scan, scan
from tools.sandbox.start import Start
from tools.sandbox.workspace_lock import workspace_lock
from tools.tool import Tool
from tools.workspace.encoding import shown_name
from tools.workspace.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
MAX_NAMED = 10
READ_ONLY = ("Read-only file system", "resource busy", "cross-device link")
HIDDEN = ("ermission denied", "can only add regular files", "unsupported file type")
"""What programs say of files that the sandbox protects, or hides."""
NO_CHILD = "cannot fork"
# What a program needs to find its way. Nothing else of the agent's environment, which
# holds the providers' keys.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")


def command_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    workspace, commands = deps.workspace, deps.commands

    async def execute_command(
        command: str,
        timeout: int | None = None,  # noqa: ASYNC109  # the model gives it
        cwd: str | None = None,
    ) -> str:
        """Run a shell command and wait for it; output comes with the exit code.

        Args:
            command: The command line, for /bin/sh.
            timeout: Seconds after which it is ended; 120 by default, 600 at most.
            cwd: The folder to run it in, relative to the workspace.
        """
        line = _Line(command, cwd or ".", min(max(timeout or DEFAULT_SECONDS, 1), MAX_SECONDS))
        if commands.sandbox is None:
            return await _run_plainly(workspace, line, commands.limits)
        return await _run_in_sandbox(workspace, line, commands.limits, commands.sandbox)

    return [
        Tool.of(
            execute_command,
            "command",
            addendum=_addendum(commands.sandbox),
            command="command",
            paths=("cwd",),
            sandboxed=commands.sandbox is not None,
        )
    ]


@dataclass(frozen=True)
class _Line:
    """A command line, the folder it is for, and how long it may take."""

    text: str
    cwd: str
    seconds: int


async def _run_plainly(workspace: Workspace, line: _Line, limits: Limits) -> str:
    folder = await asyncio.to_thread(workspace.folder, line.cwd)
    start = Start(["/bin/sh", "-c", line.text], _environment(), str(folder))
    return await run(start, line.seconds, limits, calling.get().emit)


async def _run_in_sandbox(
    workspace: Workspace, line: _Line, limits: Limits, sandbox: Sandbox
) -> str:
    now, root = calling.get(), workspace.root

    def prepare() -> tuple[Scan, Start]:
        found, folder = scan(root), workspace.folder(line.cwd)
        found.linked = few_linked_outside(root, found) if now.edits_freely else set()
        box = replace(sandbox, has_children=not now.only_looks)
        how = {"writable": now.edits_freely}
        environment = _environment(line.text, root if now.only_looks else None)
        return found, box.start(root, found, folder, line.text, environment, **how)

    async with workspace_lock(root, now.emit):
        before, start = await _prepared(prepare)
        told = await run(start, line.seconds, limits, now.emit)
        hidden = set[str]() if sandbox.shows_secrets else before.secrets
        notices = [
            *_hints(line.text, told, before, hidden),
            *_closed(sandbox.closed(before), now.edits_freely),
        ]
        if not now.edits_freely:
            notices.append("this command could not change the workspace")
        else:
            notices += await asyncio.to_thread(lambda: list(_made(root, before)))
    return "\n".join([told, *(f"[{notice}]" for notice in notices)])


async def _prepared(prepare: Callable[[], tuple[Scan, Start]]) -> tuple[Scan, Start]:
    """What ``prepare`` gives; where nobody waits for it any more, it is closed."""
    preparing = asyncio.ensure_future(asyncio.to_thread(prepare))
    try:
        return await asyncio.shield(preparing)
    except OSError as error:
        raise ToolFailedError(f"the sandbox cannot be made, nothing ran: {error}") from error
    except asyncio.CancelledError:
        preparing.add_done_callback(_close)
        raise


def _close(prepared: "asyncio.Future[tuple[Scan, Start]]") -> None:
    if prepared.exception() is None:
        prepared.result()[1].close()


def _made(root: Path, before: Scan) -> Iterator[str]:
    """What the command made of files that steer."""
    try:
        made = scan(root).makers - before.makers
    except (ToolFailedError, OSError) as error:
        yield f"the command has run, and {error}"
        return
    if made:
        what = "such files steer people and tools; the user should look at them"
        yield f"made {_named(made)}: {what}"


def _addendum(sandbox: Sandbox | None) -> str:
    """What the model should know of the place in which its commands run."""
    if sandbox is None:
        return ""
    network = "" if sandbox.has_network else ", without network"
    return (
        f" It runs in a sandbox{network}: the machine is read-only but for the workspace and /tmp, "
        "which is new each time; what is left running ends with the call."
    )


def _hints(line: str, told: str, found: Scan, hidden: set[str]) -> Iterator[str]:
    """What the sandbox may have to do with an error; programs do not know of it."""
    makers = found.steering - found.secrets | found.links | found.linked
    if makers and any(text in told for text in READ_ONLY):
        yield f"read-only for commands: {_named(makers)}"
    if git.shows_changes(line):
        if named := {path for path in hidden if path in told}:
            yield f"hidden from commands, empty for git: {_named(named)}"
    elif hidden and any(text in told for text in HIDDEN):
        yield f"hidden from commands: {_named(hidden)}"
    if calling.get().only_looks and NO_CHILD in told:
        yield (
            "a command that runs unasked cannot start another program, such as a filter or a diff "
            "program of git's; in other words it asks, and can"
        )


def _closed(closed: Closed, edits_freely: bool) -> Iterator[str]:
    """What is protected as a whole: the model would look for what is not there."""
    read_only = closed.read_only if edits_freely else set()
    for folders, how in ((closed.hidden, "hidden from"), (read_only, "read-only for")):
        if folders:
            but = f" but for {_named(closed.plain)}" if ROOT in folders and closed.plain else ""
            told = "there is too much in it that must be protected"
            yield f"{how} commands as a whole, since {told}: {_named(folders)}{but}"


def _named(paths: set[str]) -> str:
    names = [shown_name(path) for path in sorted(paths)[:MAX_NAMED]]
    return ", ".join(names) + (" and more" if len(paths) > MAX_NAMED else "")


def _environment(line: str = "", only_looks_in: Path | None = None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**kept, **git.environment(line, only_looks_in)}
