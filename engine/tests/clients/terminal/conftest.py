"""One terminal for all tests that need none of their own: each sets its mode."""

from collections.abc import Iterator

import pytest

from tests.clients.terminal.terminal import ASK, CODE, Terminal, chatting
from tests.harness.server import Server


@pytest.fixture(scope="package")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A clone in which no server runs."""
    return Server(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="package")
def open_chat(clone: Server) -> Iterator[Terminal]:
    with chatting(clone, shows=ASK) as terminal:
        yield terminal


@pytest.fixture
def chat(open_chat: Terminal) -> Terminal:
    open_chat.say("/ask", ASK)
    return open_chat


@pytest.fixture
def code(open_chat: Terminal) -> Terminal:
    """The same in Code mode."""
    open_chat.say("/code", CODE)
    return open_chat
