"""Fixtures."""

import ipaddress
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.conversation import Conversation, make_agent
from tests.place import Place


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches further than this machine."""
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert ipaddress.ip_address(address[0]).is_loopback, address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", checked)


@pytest.fixture(autouse=True)
def no_files_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The modes, permissions and trust of whoever runs the tests play no part."""
    folder = tmp_path_factory.getbasetemp() / "nobody"
    monkeypatch.setenv("CONFIG_FOLDER", str(folder))
    monkeypatch.setenv("TRUST_FILE", str(folder / "trusted.json"))


PROVIDERS = re.compile(r"(?i)^(openai|anthropic|ollama|langsmith|langchain|azure|google)_|_proxy$")


@pytest.fixture(autouse=True)
def no_provider_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keys, addresses and proxies are set, to nonsense perhaps: none is used."""
    for name in list(os.environ):
        if PROVIDERS.search(name):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on every machine; a test of the sandbox says so."""
    monkeypatch.setenv("SANDBOX", "off")


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


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A user's folders, empty."""
    return Place(tmp_path)
