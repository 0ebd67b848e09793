"""The first run on a clean machine: an empty home, no folder of ours, no setting but the database.

The other tests start from a process that has imported the agent, and with it the user's folders.
"""

import asyncio
import os
import pty
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any, cast

import pytest
from acp import Client
from acp.client.connection import ClientSideConnection

from modeshift.configuration.settings import Settings
from tests.clients.editor.editor import Editor, choosing
from tests.clients.terminal.terminal import CODE, Terminal
from tests.harness.aegra import IS_THERE, PYTHON, WHY_NOT
from tests.harness.conversation import APPROVE, until
from tests.harness.postgres import Postgres
from tests.harness.server import Server, Thread

pytestmark = pytest.mark.slow
SAYS = "write first.txt: hello"


class Machine(Server):
    """A clone of a user who has nothing else yet."""

    def environment(self, **settings: str) -> dict[str, str]:
        kept = super().environment()
        for name in list(kept):
            if name.lower() in Settings.model_fields or name.startswith("XDG_"):
                del kept[name]
        ours = {"SANDBOX": "off", "MODES_FOLDER": str(self.modes), "HOME": str(self.home)}
        return {**kept, **ours, **settings}

    def command(self, *command: str, **settings: str) -> Any:
        command = command or ("modeshift", "dev", "--port", str(self.port))
        python = PYTHON if "serve" in command else sys.executable
        return self.spawn(python, *command, **settings)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    if machine.process is None:
        return  # there is no Aegra, or no Postgres
    machine.kill()
    assert (machine.workspace / "first.txt").read_text() == "hello"


async def write_on(machine: Machine) -> None:
    async with machine.client as client:
        thread = await Thread.new(client)
        await thread.say(SAYS, mode="code")
        await thread.decide(APPROVE)
        assert thread.error is None


async def test_make_dev(machine: Machine) -> None:
    machine.start()
    await write_on(machine)


async def test_make_serve(machine: Machine, postgres: Postgres) -> None:
    if not IS_THERE:
        pytest.skip(WHY_NOT)
    command = ("modeshift", "serve", "--port", str(machine.port))
    machine.process = machine.command(*command, DATABASE_URL=postgres.make_database())
    await until(lambda: f"address    {machine.url}" in machine.log.read_text())
    assert machine.is_answering()
    await write_on(machine)


def test_make_chat(machine: Machine) -> None:
    ours, theirs = pty.openpty()
    process = Popen(
        [sys.executable, "-m", "modeshift", "chat", "--mode", "code"], cwd=machine.folder,
        env=machine.environment(TERM="xterm-256color"),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        terminal = Terminal(ours, cast("Any", process))
        terminal.until(CODE)
        terminal.play(SAYS, "a pattern (p)", "a", CODE)
        terminal.leave()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


async def test_an_editor(machine: Machine, postgres: Postgres) -> None:
    machine.workspace.mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "modeshift.editor.main", stdin=PIPE, stdout=PIPE,
        cwd=machine.folder, env=machine.environment(DATABASE_URL=postgres.make_database()),
    )  # fmt: skip
    editor = Editor(choosing("once"))
    editor.agent = ClientSideConnection(cast("Client", editor), process.stdin, process.stdout)
    await editor.agent.initialize(protocol_version=1)
    talk = await editor.talk(machine.workspace, "code")
    assert await talk.say(SAYS) == "end_turn"
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 0
