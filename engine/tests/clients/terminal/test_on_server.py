"""``make chat`` beside ``make dev``: one conversation for all clients of the server."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.terminal.terminal import ASK, CODE, CTRL_C, Terminal, chatting, in_code
from tests.clients.terminal.test_chat import CALL, COMMAND, wait_for_end
from tests.harness.root import TEMPLATE
from tests.harness.server import Server, Thread, running

OWNER = "a-token-of-sixteen-characters"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("clone"), AUTH_TOKEN=OWNER) as server:
        yield server


@pytest.fixture(scope="module")
def chat(server: Server) -> Iterator[Terminal]:
    with in_code(server, AUTH_TOKEN=OWNER) as terminal:
        yield terminal


async def test_the_server_has_the_conversation(server: Server, chat: Terminal) -> None:
    assert f"on {server.url}; /help" in chat.text
    await asyncio.to_thread(chat.say, "write a.txt: a", CALL)
    async with server.get_client(OWNER) as client:
        (listed,) = await client.threads.search()
        assert (listed["metadata"] or {})["title"] == "write a.txt: a"
        thread = Thread(client, listed["thread_id"])
        assert [request["name"] for request in await thread.waiting()] == ["write_file"]
        chat.press("a")
        seen = await asyncio.to_thread(chat.until, CODE)
        assert "  Created a.txt (1 character).\n\nHere is how it went:\n" in seen
        assert await thread.waiting() == []
    assert (server.workspace / "a.txt").read_text() == "a"
    assert " 404 " not in server.log.read_text()


def test_the_last_thread_of_the_server(server: Server, chat: Terminal) -> None:
    chat.say("done: It was said before.", CODE)
    with chatting(server, "--thread", "last", AUTH_TOKEN=OWNER) as terminal:
        assert "\n> done: It was said before.\n" in terminal.until(CODE)
        assert "\n▸ 1 Stay in this one" in terminal.say("/threads", "Stay in this one")


def test_ctrl_c_stops_the_run_on_the_server(server: Server, chat: Terminal) -> None:
    run = "run echo $$ > pid; echo begun; sleep 600"
    chat.play(run, COMMAND, "a", "  begun\ncode>", CTRL_C, CODE)
    wait_for_end(server)


def test_another_workspace_is_not_the_servers(server: Server, tmp_path: Path) -> None:
    with chatting(server, WORKSPACE=str(tmp_path)) as terminal:
        assert "by itself" in terminal.until(ASK)


def test_a_question_waits_while_the_prompts_cannot_be_read(tmp_path: Path) -> None:
    """And the prompt has the thread's mode, where the server alone knows it."""
    own, other = tmp_path / "own", tmp_path / "other"
    for name in ("modes", "prompts"):
        shutil.copytree(TEMPLATE / name, own / name)
    base, modes = own / "prompts/_base.md", str(own / "modes")
    text = base.read_text()
    with (
        running(tmp_path, MODES_FOLDER=modes) as server,
        chatting(server, "--mode", "code", shows=CODE, MODES_FOLDER=modes) as terminal,
    ):
        terminal.say("write a.txt: a", CALL)
        base.write_text(f"{text}{{{{ nope }}}}")
        terminal.press("a")
        terminal.until_sent("'nope' is")
        terminal.until(CALL)
        base.write_text(text)
        assert "Created a.txt" in terminal.play("a", CODE)
        other.mkdir()
        shutil.copy(own / "modes/ask.yaml", other)
        with chatting(server, "--thread", "last", shows=CODE, MODES_FOLDER=str(other)):
            pass


def test_a_server_that_is_gone(server: Server, chat: Terminal) -> None:
    server.kill()
    seen = chat.say("list", CODE)
    assert "the server does not answer" in seen
    server.start(AUTH_TOKEN=OWNER)
    assert "Here is how it went:" in chat.say("list", CODE)
