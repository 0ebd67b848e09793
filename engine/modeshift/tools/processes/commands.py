"""Running a command for a model, in the sandbox if there is one, and reading what it prints."""

from dataclasses import replace

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.processes.background import Calling, Ran, TurnCommands, calling, shorten
from modeshift.tools.processes.process import MAX_SECONDS
from modeshift.tools.processes.sandboxes import Command, Commands, Sandbox
from modeshift.tools.workspace.workspace import Workspace

MAX_LINES = 2000


async def run_command(
    workspace: Workspace,
    commands: Commands,
    line: str,
    *,
    folder: str = ".",
    seconds: int,
    in_background: bool = False,
) -> str:
    """Run a command line with /bin/sh; what it printed, and how it ended.

    In the background: at once what to read its output with. Raises ``ToolFailedError`` where it
    cannot run so.
    """
    here, command = calling.get(), Command(line, folder, min(max(seconds, 1), MAX_SECONDS))
    turn = here.commands
    if commands.sandbox and turn and (running := turn.name_running()):
        raise ToolFailedError(
            f"one command runs at a time in the sandbox, and {running} is still running; "
            "wait for it with read_output"
        )

    async def run(calling: Calling) -> str:
        ended = await commands.run(workspace, command, calling)
        here.ran.append(Ran(line, folder, None if in_background else ended.exit_code))
        return ended.text

    if in_background:
        if turn is None or here.is_read_only:
            why = "it runs unasked" if turn else "this conversation has no thread"
            raise ToolFailedError(f"{line!r} cannot run in the background, as {why}")
        here.ran.append(Ran(line, folder, None))
        id = turn.start(line, here.call_id, lambda emit: run(replace(here, emit=emit)))
        return f"Started in the background; read its output with read_output, id={id!r}."
    text = await run(here)
    if turn is None or here.is_read_only:
        return shorten(text)
    return turn.shorten(line, here.call_id, text)


async def read_command(id: str, start: int | None = None, wait: int = 0) -> str:
    """Lines of what a command of this turn has printed; waits so many seconds for its end."""
    turn = calling.get().commands or TurnCommands()
    return await turn.read(id, max(start or 1, 1), MAX_LINES, wait)


def describe_sandbox(sandbox: Sandbox | None) -> str:
    """What the model should know of where its commands run."""
    if sandbox is None:
        return ""
    network = "" if sandbox.has_network else ", without network"
    return (
        f" It runs in a sandbox{network}: the machine is read-only but for the workspace and /tmp, "
        "which is new each time; what is left running ends with the call, one runs at a time."
    )
