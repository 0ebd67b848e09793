"""One agent's process for all tests whose sessions have nothing to do with each other."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.clients.editor.editor import ALL, Editor, Talk, editing
from tests.clients.editor.model import CLAUDE, GPT, answer
from tests.provider.server import serving


@pytest.fixture(scope="session")
def settings() -> Iterator[dict[str, str]]:
    """Of the agent: the models of a provider that says what ``model.py`` has it say."""
    with serving(answer) as provider:
        yield {"MODELS": f"{GPT}, {CLAUDE}, groq:x", **provider.settings}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the processes' data, which they share."""
    return tmp_path_factory.mktemp("editors")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def first_process(data: Path, settings: dict[str, str]) -> AsyncIterator[Editor]:
    async with editing(data, settings) as editor:
        yield editor


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def second_process(data: Path, settings: dict[str, str]) -> AsyncIterator[Editor]:
    async with editing(data, settings) as editor:
        yield editor


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def process_for_all(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> AsyncIterator[Editor]:
    async with editing(tmp_path_factory.mktemp("editors"), settings, offered=ALL) as editor:
        yield editor


@pytest.fixture
def editor(first_process: Editor) -> Editor:
    """As if it had just been started."""
    first_process.reset()
    return first_process


@pytest.fixture
def other(second_process: Editor) -> Editor:
    """Another window: another process with the same sessions."""
    second_process.reset()
    return second_process


@pytest_asyncio.fixture(loop_scope="session")
async def talk(editor: Editor, workspace: Path) -> Talk:
    """A session in Ask mode, with the offline model."""
    return await editor.talk(workspace)


@pytest_asyncio.fixture(loop_scope="session")
async def code(editor: Editor, workspace: Path) -> Talk:
    """A session in Code mode, with the offline model."""
    return await editor.talk(workspace, "code")


@pytest_asyncio.fixture(loop_scope="session")
async def gpt(editor: Editor, workspace: Path) -> Talk:
    """A session in Ask mode, with what ``model.py`` has the model say."""
    return await editor.talk(workspace, model=GPT)
