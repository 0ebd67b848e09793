"""Calls that are cancelled while their program starts, in the real sandbox."""

import asyncio
import time
from pathlib import Path

import psutil

from modeshift.tools.processes.process import Limits, run
from modeshift.tools.processes.sandboxes import Service
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import until
from tests.harness.sleepers import new_mark
from tests.tools.sandbox.commands import needs_sandbox, sandbox

STARTS = 200


@needs_sandbox
async def test_nothing_stays_of_a_start_that_is_cancelled(workspace: Path) -> None:
    """Not even where the event loop is busy, and bubblewrap has long been making its sandbox."""
    mark, loop = new_mark(), asyncio.get_running_loop()
    service = Service(("sleep", mark), workspace, {}, False, False)

    def cut(after: int, milliseconds: int) -> None:
        """Cancel so many turns of the event loop later; each takes its time."""
        time.sleep(milliseconds / 1000)
        loop.call_soon(cut, after - 1, milliseconds) if after else running.cancel()

    for number in range(STARTS):
        program = await asyncio.to_thread(sandbox().build_program, Workspace(workspace), service)
        running = asyncio.create_task(run(program, 60, Limits(), print))
        loop.call_soon(cut, number % 8, number // 8 % 5)
        await asyncio.wait({running})
        assert running.cancelled()
    await until(lambda: not find_marked(mark))


def find_marked(mark: str) -> list[psutil.Process]:
    """Those that would sleep, or have been started for it."""
    listed = psutil.process_iter(["cmdline"])
    return [one for one in listed if mark in " ".join(one.info["cmdline"] or [])]
