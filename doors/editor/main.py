"""The agent for editors: the Agent Client Protocol on standard input and output.

An editor starts it; `make acp` prints what to put into the editor's settings. Settings come
from .env in the clone; the editor's folder is the workspace. Logs go to standard error.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import cast

from acp import Agent, run_agent

from doors.editor.agent import EditorAgent
from doors.editor.store import Sessions
from doors.editor.transport import connect_pipes, take_standard_streams
from graph.configuration.cache import AgentCache
from graph.configuration.environment import load_settings
from graph.configuration.user_files import make_private
from graph.configuration.whole_writes import WholeWrites
from graph.models.loading import load_model
from graph.settings import Settings
from graph.threads.mailbox import Mailbox
from modes.errors import ConfigurationError, UserError

EXIT_SECONDS = 4
THREADS = 512
"""A read through the editor blocks one; no session may use up those of another."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the editor closes the connection; exit with a message if that is impossible."""
    parser = argparse.ArgumentParser(
        prog="modeshift-acp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--print-settings", action="store_true", help="print what to put into an editor's settings"
    )
    options = parser.parse_args(arguments)
    try:
        settings = load_settings()
        if options.print_settings:
            print("\n".join(_describe_settings(settings)))
        else:
            _serve(settings)
    except (UserError, OSError) as error:
        sys.exit(f"modeshift-acp: {error}")
    except sqlite3.Error as error:
        sys.exit(f"modeshift-acp: SESSIONS={str(settings.sessions)!r}: {error}")
    except KeyboardInterrupt:
        pass


def _describe_settings(settings: Settings) -> Iterator[str]:
    for model in settings.choices:
        load_model(model)  # or the agent would not start
    command = Path(sys.executable).with_name("modeshift-acp")
    if not command.exists():
        raise ConfigurationError(f"{command} does not exist; run `make clean`, then `make acp`")
    server = {"command": str(command), "args": [], "env": {}}
    yield f"command    {command}"
    yield f'model      {settings.model}  (MODEL in .env, or in the editor\'s "env")'
    yield f"sessions   {settings.sessions}"
    yield "\nZed, in settings.json:"
    yield json.dumps({"agent_servers": {"Modeshift": {"type": "custom", **server}}}, indent=2)
    yield "\nJetBrains, in ~/.jetbrains/acp.json:"
    # Off by default there: the IDE's own MCP server, and those that its user has configured.
    mcp = {"use_idea_mcp": True, "use_custom_mcp": True}
    jetbrains = {"default_mcp_settings": mcp, "agent_servers": {"Modeshift": server}}
    yield json.dumps(jetbrains, indent=2)
    yield f"\nToad:  toad acp {command}"
    yield f"acpx:  acpx --agent {command}"


def _serve(settings: Settings) -> None:
    if not all(map(_is_pipe, (0, 1))):
        raise ConfigurationError(
            "it talks JSON-RPC to an editor, over pipes; `make acp` in the clone prints what to "
            "put into the editor's settings"
        )
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    # No network request that nobody asked for; a value that the user has set wins.
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    make_private(settings.sessions)
    asyncio.run(_serve_editor(settings))


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve_editor(settings: Settings) -> None:
    transport = await connect_pipes(*take_standard_streams())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, transport.hang_up)
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    async with (
        WholeWrites.from_conn_string(str(settings.sessions)) as saver,
        Sessions.open(settings.sessions) as sessions,
    ):
        agents = AgentCache(settings, saver, Mailbox(settings.sessions))
        agent = EditorAgent(agents, sessions, transport)
        try:
            # The SDK still calls closing and resuming unstable; the protocol does not.
            await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
        finally:
            # Whatever delays the end, such as a lock on the file: the editor is gone.
            deadline = Timer(EXIT_SECONDS, os._exit, (1,))
            deadline.daemon = True
            deadline.start()
            await agent.leave()


if __name__ == "__main__":
    main()
