"""The examples of README and docs, run against the server, the terminal and make."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import read_part
from repository import ROOT

from modeshift.__main__ import COMMANDS
from modeshift.commands.run_rules import load_rules
from tests.harness.conversation import SECONDS
from tests.harness.place import UserFolders
from tests.harness.root import ENGINE
from tests.harness.server import Server, running

ADDRESS = "http://127.0.0.1:2024"
VARIABLES = {"source": "FROM", "message": "MSG", "max-cost": "MAX_COST"}
"""Of make, where Python has the word for itself."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One of the starter's tests."""
    with running(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.xdist_group("examples")
def test_the_snippet_of_the_docs(server: Server, tmp_path: Path) -> None:
    (server.workspace / "hello.txt").unlink(missing_ok=True)
    snippet = tmp_path / "snippet.py"
    code = read_part("sdk")
    assert ADDRESS in code
    snippet.write_text(code.replace(ADDRESS, server.url))
    done = subprocess.run(
        [sys.executable, snippet], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Switch from Ask to Code mode?" in done.stdout
    assert "Created hello.txt" in done.stdout.splitlines()[-1]
    assert (server.workspace / "hello.txt").read_text() == "hello"


@pytest.mark.xdist_group("examples")
async def test_the_example_over_http_runs(server: Server) -> None:
    (server.workspace / "hello.txt").unlink(missing_ok=True)
    code = read_part("http").replace(ADDRESS, server.url)
    await asyncio.to_thread(exec, code, {})
    assert not (server.workspace / "hello.txt").exists()


def test_the_transcript_is_what_the_terminal_shows() -> None:
    known = ENGINE / "tests/snapshots/first-conversation.txt"
    assert read_part("transcript") == known.read_text(encoding="utf-8")


def test_the_rules_of_a_run_are_of_this_clone(place: UserFolders) -> None:
    file = place.root / "rules.yaml"
    file.write_text(read_part("run-rules"))
    assert len(load_rules(place.loader().deps(), place.settings(), file)) == 3


def test_the_picture_of_the_terminal_is_what_it_shows() -> None:
    known = ENGINE / "tests/snapshots/terminal.svg"
    assert (ROOT / "docs/pictures/terminal.svg").read_bytes() == known.read_bytes(), "copy it"


@pytest.mark.parametrize("command", COMMANDS)
def test_make_passes_every_option_on(command: str) -> None:
    _, options = COMMANDS[command]
    names = [option.partition("=")[0] for option in options]

    def show(value: str) -> str:
        variables = [f"{VARIABLES.get(name, name.upper())}={value}" for name in names]
        run = subprocess.run(["make", "-n", command, *variables], cwd=ROOT, stdout=-1, check=True)
        return run.stdout.decode()

    assert re.findall(r" --([\w-]+)", show("1")) == names
    flags = {option for option in options if "=" not in option}
    assert not flags & {*re.findall(r" --([\w-]+)", show("0"))}
