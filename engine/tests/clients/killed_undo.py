"""Undoes a thread's last turn, and is killed before or behind a write: THREAD LEFT WHERE."""

import asyncio
import os
import signal
import sys
from typing import Any

from modeshift import open_agent
from modeshift.threads.compiled import Agent
from modeshift.tools.workspace.workspace import Workspace


def plant(left: int, where: str) -> None:
    """Have the process killed instead of the write behind ``left`` others."""
    writes: dict[str, tuple[type, str]] = {"file": (Workspace, "put_back")}
    owner, method = writes.get(where, (Agent, "aupdate_state"))
    real = getattr(owner, method)

    def die(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **named)

    async def die_behind(*args: Any, **named: Any) -> None:
        await real(*args, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, method, die_behind if where == "behind" else die)


async def main() -> None:
    async with open_agent() as agents:
        thread = agents.thread(sys.argv[1])
        await thread.undo("last", (await thread.undo())["digest"])


if __name__ == "__main__":
    plant(int(sys.argv[2]), sys.argv[3])
    asyncio.run(main())
