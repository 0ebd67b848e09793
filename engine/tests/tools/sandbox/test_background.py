"""Commands in the background of a turn, in the real sandbox."""

from pathlib import Path

import pytest

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.processes.background import TurnCommands
from modeshift.tools.processes.sandboxes import Commands
from tests.harness.sleepers import new_mark, wait_for
from tests.tools.processes.test_background import name, running
from tests.tools.sandbox.commands import needs_sandbox, sandbox


@needs_sandbox
async def test_in_the_sandbox_as_in_the_foreground(workspace: Path) -> None:
    """The same borders, one command at a time, and all of its processes end."""
    turn, mark = TurnCommands(), new_mark()
    run = running(workspace, turn, Commands(sandbox()))
    await run("execute_command", command="touch in ../out /usr/x", background=True)
    shown = await run("read_output", id=name(0), wait=30)
    assert "Read-only file system" in shown
    assert [each.name for each in workspace.parent.iterdir()] == [workspace.name]
    assert (workspace / "in").exists()
    await run("execute_command", command=f"setsid sleep {mark} & sleep {mark}", background=True)
    await wait_for(True, mark)
    for background in (True, False):
        with pytest.raises(ToolFailedError, match=rf"one command runs at a time.*{name(2)} \('set"):
            await run("execute_command", command="true", background=background)
    await turn.end()
    await wait_for(False, mark)
    assert "exit code 0" in await run("execute_command", command="true")
