"""Fixtures."""

from pathlib import Path

import pytest

from tests.conversation import Conversation, make_agent


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def talk(workspace: Path) -> Conversation:
    """A thread with the offline model, approvals manual, starting in ask."""
    return Conversation(make_agent(workspace))
