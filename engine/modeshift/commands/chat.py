"""``make chat``: the conversation in this terminal."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from modeshift.agent import open_agent
from modeshift.commands.dev import DEFAULTS, find_server
from modeshift.configuration.databases import get_history_file
from modeshift.configuration.prices import load_prices
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.terminal.completion import ChatCompleter
from modeshift.terminal.conversation import Chat
from modeshift.terminal.panel import Panel
from modeshift.terminal.plain import PlainPanel
from modeshift.terminal.screen import has_cursor


def main(*, thread: str | None = None, mode: str | None = None) -> Iterator[str]:
    """Talk until the person leaves, and say how to go on with the thread. Raises ``UserError``."""
    settings = load_settings()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "make chat needs a terminal; without one: make run MSG=..., docs/use/headless.md"
        )
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    os.environ["PROMPT_TOOLKIT_NO_CPR"] = "1"  # the terminal's answer would come among the keys
    logging.basicConfig(level=logging.ERROR)
    id = asyncio.run(_talk(settings, thread, mode))
    if id is not None:
        yield f"To go on with it: make chat THREAD={id}"


async def _talk(settings: Settings, id: str | None, mode: str | None) -> str | None:
    """Talk; returns the id of the thread that is open at the end, None if it holds nothing."""
    address = find_server(settings)
    async with open_agent(settings, address=address) as agents:
        thread = await agents.find_thread(id)
        deps = await thread.deps()
        model = deps.models.default
        if model == "offline":
            model += " (no language model; see .env.example)"
        place = deps.workspace or deps.toolbox.workspace.root
        workspace = f"; workspace {place}" if deps.toolbox.has_workspace else ""
        where = f"on {address}" if address else "by itself, in this process"
        completer = ChatCompleter(Path(place) if deps.toolbox.has_workspace else None)
        history = get_history_file(settings.checkpoints)
        panel = Panel(history, completer) if has_cursor() else PlainPanel(history)
        prices = await asyncio.to_thread(load_prices, settings)
        chat = Chat(agents, thread, deps, panel, prices, where)
        completer.list_commands = chat.list_commands
        told = f"model {model}{workspace}\n{where}; /help lists the commands, Ctrl-D leaves"
        await panel.run(chat.run(mode, told))
        return chat.thread.id if (await chat.thread.state()).values else None
