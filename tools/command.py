"""The ``command`` group: run a program in the workspace."""

import asyncio

from tools.calling import calling
from tools.deps import ToolDeps
from tools.processes.environment import build_environment
from tools.processes.process import Program, run
from tools.processes.sandboxes import Command, Sandbox
from tools.tool import Tool

DEFAULT_SECONDS = 120
MAX_SECONDS = 600


def command_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group."""
    workspace, sandbox, limits = deps.workspace, deps.commands.sandbox, deps.commands.limits

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
        if sandbox is not None:
            given = Command(command, cwd or ".", seconds)
            return await sandbox.run(workspace, given, limits, calling.get())
        folder = await asyncio.to_thread(workspace.resolve_folder, cwd or ".")
        program = Program(["/bin/sh", "-c", command], build_environment(), str(folder))
        return await run(program, seconds, limits, calling.get().emit)

    return [
        Tool.of(
            execute_command,
            "command",
            addendum=_describe_sandbox(sandbox),
            command="command",
            paths=("cwd",),
            sandboxed=sandbox is not None,
        )
    ]


def _describe_sandbox(sandbox: Sandbox | None) -> str:
    """What the model should know of where its commands run."""
    if sandbox is None:
        return ""
    network = "" if sandbox.has_network else ", without network"
    return (
        f" It runs in a sandbox{network}: the machine is read-only but for the workspace and /tmp, "
        "which is new each time; what is left running ends with the call."
    )
