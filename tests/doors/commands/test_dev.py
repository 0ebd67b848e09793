"""`make dev`: it says what it serves, and refuses what cannot be served."""

import socket
from pathlib import Path

import pytest

from doors.commands.dev import main
from graph.settings import ROOT
from tests.harness.server import Server


@pytest.fixture
def clone(tmp_path: Path) -> Server:
    return Server(tmp_path)


def refused(clone: Server, **settings: str) -> str:
    """What it prints when it does not start."""
    process = clone.command(**settings)
    try:
        assert process.wait(30) == 1
    finally:
        process.kill()
    text = clone.log.read_text()
    assert "Traceback" not in text
    assert text.startswith("modeshift: ")
    return text


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"MODEL": "gpt-5"}, ["'gpt-5'", "provider:name"]),
        ({"MODEL": "openai:"}, ["'openai:'", "provider:name"]),
        ({"MODEL": "wizard:merlin"}, ["'wizard:merlin'", "wizard"]),
        ({"MODEL": "anthropic:claude-sonnet-5-5"}, ["ANTHROPIC_API_KEY", ".env"]),
        ({"MODEL": "openai:gpt-5.5"}, ["OPENAI_API_KEY", ".env"]),
        ({"MODEL": "groq:llama"}, ["langchain-groq"]),
        ({"WORKSPACE": "/nowhere/at/all"}, ["'/nowhere/at/all'", "not a folder"]),
        ({"DEFAULT_MODE": "kode"}, ["'kode'", "the modes are: "]),
        ({"APPROVALS": "yolo"}, ["APPROVALS='yolo'", "'manual' or 'auto'"]),
        ({"MAX_STEPS": "0"}, ["MAX_STEPS='0'"]),
        ({"PORT": "x"}, ["PORT='x'"]),
        ({"PORT": "70000"}, ["PORT='70000'"]),
        ({"RELOAD": "1", "WORKSPACE": str(ROOT)}, ["RELOAD=1", "WORKSPACE"]),
    ],
)
def test_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], texts: list[str]
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PORT", "0")
    monkeypatch.setenv("WORKSPACE", str(tmp_path))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=r"^modeshift: ") as caught:
        main(tmp_path / "none")
    for expected in texts:
        assert expected in str(caught.value)


def test_a_port_that_is_taken(clone: Server) -> None:
    """`langgraph dev` would take another one, and the user's client would not find it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", clone.port))
        taken.listen()
        assert f"PORT='{clone.port}'" in refused(clone)


def test_settings_come_from_a_file_and_the_environment_wins(clone: Server) -> None:
    (clone.folder / ".env").write_text("MODEL=from:file\nWORKSPACE=/from/file\n")
    assert "'/from/file'" in refused(clone, MODEL="offline")
    clone.log.unlink()
    assert "'from:file'" in refused(clone, WORKSPACE=str(clone.folder))
