"""The ``command`` group: run a program in the workspace."""

import asyncio
import os

from modes.errors import ToolFailedError
from modes.toolspec import Effect, ToolGroup
from tools.calling import calling
from tools.commands import Commands
from tools.process import run
from tools.start import Start
from tools.survey import Survey, survey
from tools.tool import Tool
from tools.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
# What a program needs to find its way. Nothing else of the agent's environment, which
# holds the providers' keys.
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")
# git looks around before it does what it is told: a program that the settings of a folder
# name as its file monitor, a bare repository among the files.
GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
}


def command_tools(workspace: Workspace, commands: Commands) -> list[Tool]:
    """The tools of the group, on this workspace."""
    sandbox = commands.sandbox

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
        seconds = min(max(timeout or DEFAULT_SECONDS, 1), MAX_SECONDS)
        now = calling.get()

        def prepare() -> tuple[Start, Survey]:
            folder = workspace.folder(cwd or ".")
            environment = _environment()
            if sandbox is None:
                return Start(["/bin/sh", "-c", command], environment, str(folder)), Survey()
            found = survey(workspace.root)
            return sandbox.start(
                workspace.root, found, folder, command, environment, writable=now.edits_freely
            ), found

        try:
            start, before = await asyncio.to_thread(prepare)
        except OSError as error:
            raise ToolFailedError(f"the sandbox cannot be made, nothing ran: {error}") from error
        told = await run(start, seconds, commands.limits, now.emit)
        if sandbox is None:
            return told
        if not now.edits_freely:
            return f"{told}\n[this command could not change the workspace]"
        new = (await asyncio.to_thread(survey, workspace.root)).makers - before.makers
        return told if not new else f"{told}\n{_notice(new)}"

    return [
        Tool.of(
            execute_command,
            Effect.COMMAND,
            ToolGroup.COMMAND,
            command="command",
            sandboxed=sandbox is not None,
        )
    ]


def _notice(new: set[str]) -> str:
    made = ", ".join(sorted(new))
    return f"[made {made}: such files steer people and tools; the user should look at them]"


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**kept, **GIT}
