"""The agent for editors: the Agent Client Protocol on standard input and output.

An editor starts it; `make acp` prints what to put into the editor's settings. Settings come
from .env in the clone; the editor's folder is the workspace. Logs go to standard error.
"""

import asyncio
import importlib
import logging
import os
import signal
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from threading import Timer
from typing import Any, cast

from acp import Agent, run_agent
from acp.interfaces import Client
from acp.schema import ClientCapabilities

from modeshift.editor.entrance import Entrance
from modeshift.editor.transport import Editor, connect_pipes, take_standard_streams

EXIT_SECONDS = 4
THREADS = 512
"""A read through the editor blocks one; no session may use up those of another."""


def main() -> None:
    """Serve until the editor closes the connection; exit with a message if that is impossible."""
    if not all(map(_is_pipe, (0, 1))):
        sys.exit(
            "modeshift-acp: it talks JSON-RPC to an editor, over pipes; `make acp` in the clone "
            "prints what to put into the editor's settings"
        )
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    # No network request that nobody asked for; a value that the user has set wins.
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve_editor())


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve_editor() -> None:
    transport = await connect_pipes(*take_standard_streams())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, transport.hang_up)
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    async with AsyncExitStack() as stack:

        async def open_agent(client: Client, offered: ClientCapabilities) -> Any:
            agent = await asyncio.to_thread(importlib.import_module, "modeshift.editor.agent")
            return await stack.enter_async_context(
                agent.open_agent(Editor(client, offered, transport.withdraw))
            )

        try:
            # The SDK still calls closing and resuming unstable; the protocol does not.
            entrance = cast("Agent", Entrance(open_agent))
            await run_agent(entrance, transport, use_unstable_protocol=True)
        finally:
            # Whatever delays the end, such as a lock on the file: the editor is gone.
            deadline = Timer(EXIT_SECONDS, os._exit, (1,))
            deadline.daemon = True
            deadline.start()


if __name__ == "__main__":
    main()
