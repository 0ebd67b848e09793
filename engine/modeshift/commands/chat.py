"""``make chat``: the conversation in this terminal."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from modeshift.agent import open_agent
from modeshift.commands.dev import DEFAULTS, find_server
from modeshift.configuration.own_files import get_history_file
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import ConfigurationError, InvalidInputError
from modeshift.storage.kept_threads import spell_thread
from modeshift.terminal.conversation import Chat
from modeshift.terminal.screen import FAINT, Keyboard, Screen


def main(
    *, thread: str | None = None, mode: str | None = None, env_file: Path | None = None
) -> Iterator[str]:
    """Talk until the person leaves; how to go on with the thread. Raises ``UserError``."""
    settings = load_settings(env_file)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "make chat needs a terminal; a program uses langgraph_sdk: docs/use/approvals.md"
        )
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    logging.basicConfig(level=logging.ERROR)
    id = spell_thread(thread) if thread else str(uuid4())
    if asyncio.run(_talk(settings, id, mode, is_new=thread is None)):
        yield f"To go on with it: make chat THREAD={id}"


async def _talk(settings: Settings, id: str, mode: str | None, *, is_new: bool) -> bool:
    """Whether there is such a thread afterwards."""
    address = find_server(settings)
    async with open_agent(settings, address=address) as agents:
        thread = agents.thread(id)
        if not is_new and not (await thread.state()).values:
            raise InvalidInputError(f"there is no thread {id!r}; leave THREAD out for a new one")
        screen = Screen()
        deps = await thread.deps()
        model = deps.models.default
        if model == "offline":
            model += " (no language model; see .env.example)"
        place = deps.workspace or deps.toolbox.workspace.root
        workspace = f"; workspace {place}" if deps.toolbox.has_workspace else ""
        where = f"on {address}" if address else "by itself, in this process"
        screen.words(f"model {model}{workspace}", FAINT, "")
        screen.words(f"{where}; /help lists the commands, Ctrl-D leaves", FAINT, "")
        keyboard = Keyboard(get_history_file(settings.checkpoints))
        await Chat(thread, where, screen, keyboard).run(mode)
        return bool((await thread.state()).values)
