"""The agent for editors: the Agent Client Protocol on standard input and output.

An editor starts it; `make acp` prints what to put in the editor's settings. Settings come
from .env in the clone; the editor's folder is the workspace. Logs go to standard error.
"""

import argparse
import asyncio
import logging
import os
import signal
import sqlite3
import stat
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from typing import cast

from acp import Agent, run_agent

from doors.editor.agent import EditorAgent
from doors.editor.agent_cache import AgentCache
from doors.editor.store import Sessions, WholeWrites
from doors.editor.transport import own_pipes, stdio
from graph.configuration.private import make_private
from graph.settings import Settings, load_settings
from modes.errors import UserError

END_SECONDS = 4
THREADS = 512
"""Each waits for the editor to show a file, say; a session keeps no other from its own."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the editor closes the connection; end with a message where it cannot start."""
    parser = argparse.ArgumentParser(
        prog="modeshift-acp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(arguments)
    if not all(map(_is_pipe, (0, 1))):
        sys.exit(
            "modeshift-acp: it talks JSON-RPC to an editor, over pipes; `make acp` in the clone "
            "prints what to put in the editor's settings"
        )
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    # No network call that nobody asked for; what the user has set wins.
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    try:
        settings = load_settings()
        make_private(settings.sessions)
        asyncio.run(_serve(settings))
    except (UserError, OSError) as error:
        sys.exit(f"modeshift-acp: {error}")
    except sqlite3.Error as error:
        sys.exit(f"modeshift-acp: SESSIONS={str(settings.sessions)!r}: {error}")
    except KeyboardInterrupt:
        pass


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve(settings: Settings) -> None:
    wire = await stdio(*own_pipes())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, wire.hang_up)
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    async with (
        WholeWrites.from_conn_string(str(settings.sessions)) as saver,
        Sessions.opened(settings.sessions) as sessions,
    ):
        agent = EditorAgent(AgentCache(settings, saver), sessions)
        try:
            # To the SDK, close and resume are unstable; to the protocol they are not any more.
            await run_agent(cast("Agent", agent), wire, use_unstable_protocol=True)
        finally:
            # Whatever holds it up, a lock on the file say: the editor is gone, and it goes too.
            deadline = Timer(END_SECONDS, os._exit, (1,))
            deadline.daemon = True
            deadline.start()
            await agent.leave()
            await cast("WholeWrites", saver).written()


if __name__ == "__main__":
    main()
