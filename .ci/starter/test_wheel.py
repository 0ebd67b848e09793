"""A clone that has the engine as a wheel: begun by ``make start``, in an empty folder."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import httpx
import pytest
from langgraph_sdk import get_client
from repository import ROOT

from tests.harness.clone import git
from tests.harness.conversation import APPROVE, SECONDS
from tests.harness.place import environment
from tests.harness.programs import run, run_well
from tests.harness.root import ENGINE
from tests.harness.server import Thread, free_port

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]
NOT_THEIRS = ("PYTHONPATH", "MODES_FOLDER", "SANDBOX", "CI")
ONE_AT_A_TIME = "PYTEST=.venv/bin/pytest"
"""For make, where three processes take longer to begin than the tests do."""


class FirstStart(NamedTuple):
    """The clone's folder, and what its environment had before any test."""

    clone: Path
    packages: list[str]
    mib: int


def plain(folder: Path) -> dict[str, str]:
    """A user's environment, with data of its own; what is installed is what ``make check`` had."""
    variables = environment(folder, MODEL="offline", UV_OFFLINE="1")
    return {name: value for name, value in variables.items() if name not in NOT_THEIRS}


def start(folder: Path, *words: str) -> str:
    """Begin a clone; one at a time, as each builds the wheel anew in the repository."""
    with (ROOT / "Makefile").open() as lock:
        flock(lock, LOCK_EX)
        return run_well("make", "start", f"TO={folder}", *words, cwd=ROOT, env=plain(folder.parent))


def make(clone: Path, *words: str) -> str:
    return run_well("make", *words, cwd=clone, env=plain(clone.parent))


def test_all_that_git_knows_of_the_engine_is_in_the_wheel(clone: Path) -> None:
    (wheel,) = (clone / "wheels").glob("*.whl")
    listed = git(ENGINE, "ls-files", "modeshift").stdout.split()
    with ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if not name.endswith("/")}
    assert set(listed) == {name for name in packed if name.startswith("modeshift/")}
    assert {"modeshift/page/index.html", "modeshift/py.typed"} <= packed


def test_nothing_of_the_engine_is_in_the_clone(clone: Path) -> None:
    assert not (clone / "engine").exists()
    assert not [*(clone / ".ci").glob("starter")]
    shown = "import modeshift; print(modeshift.__file__)"
    file = run_well(clone / ".venv/bin/python", "-c", shown, cwd=clone, env=plain(clone.parent))
    assert Path(file.strip()).is_relative_to(clone / ".venv")


def test_what_make_does(clone: Path) -> None:
    make(clone, "renew", "record", "SCRIPTED=1")
    assert "| `ask` (the default) |" in (clone / "README.md").read_text()
    make(clone, "snapshots", "check")
    planned = run_well("make", "-n", "check", cwd=clone)
    assert "engine" not in planned.replace(str(clone), "")


def test_its_tests_look_at_the_owners_graph(clone: Path) -> None:
    make(clone, "venv-test")
    nodes = clone / "graph/nodes.py"
    known = nodes.read_text()
    try:
        nodes.write_text(known.replace("step.ask_model(mode)", 'step.ask_model("ask")'))
        done = run("make", ONE_AT_A_TIME, "test", "T=gates", cwd=clone, env=plain(clone.parent))
    finally:
        nodes.write_text(known)
    assert "the model has the tools of another mode" in done.stdout


def test_chat(clone: Path) -> None:
    done = run("make", "chat", cwd=clone, env=plain(clone.parent))
    assert "terminal" in done.stderr.splitlines()[0], "it is there, and wants one"


@contextmanager
def serving(clone: Path, **variables: str) -> Iterator[str]:
    """The address of the clone's dev server, which runs during the block; its log is beside it."""
    port = free_port()
    log = clone.parent / "log.txt"
    with log.open("w") as output:
        server = subprocess.Popen(
            ["make", "dev", f"PORT={port}"], cwd=clone, env=plain(clone.parent) | variables,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            end = time.monotonic() + SECONDS
            while "\naddress " not in log.read_text():
                assert server.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


async def test_the_dev_server(clone: Path) -> None:
    with serving(clone) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            page = await client.get("/app")
            assert page.content == (ENGINE / "modeshift/page/index.html").read_bytes()
        async with get_client(url=url) as langgraph:
            thread = await Thread.new(langgraph)
            await thread.say("write notes.txt: hello")
            await thread.decide(APPROVE)
            await thread.decide(APPROVE)
            assert thread.error is None
            assert await thread.mode() == "code"
    assert (clone / "workspace/notes.txt").read_text() == "hello"


def test_a_wheel_of_another_hash_is_not_installed(clone: Path) -> None:
    project = clone / "pyproject.toml"
    known = project.read_text()
    try:
        project.write_text(re.sub("#sha256=[0-9a-f]", "#sha256=x", known))
        done = run("make", "modes", cwd=clone, env=plain(clone.parent))
    finally:
        project.write_text(known)
    assert "pyproject.toml names another file or hash" in done.stderr
    assert done.stdout == ""


def test_where_the_engine_is_a_wheel_upgrade_says_what_to_do(clone: Path) -> None:
    done = run("make", "upgrade", f"FROM={ROOT}", cwd=clone, env=plain(clone.parent))
    assert "The engine is a wheel here" in done.stderr


def test_a_clone_begins_with_the_wheel_that_is_named(clone: Path, tmp_path: Path) -> None:
    (wheel,) = (clone / "wheels").glob("*.whl")
    others = [wheel.with_name(f"modeshift-0.{number}.0-py3-none-any.whl") for number in (1, 9)]
    try:
        for other in others:
            other.write_bytes(b"")
        make(clone, "start", f"TO={tmp_path}/next")
    finally:
        for other in others:
            other.unlink()
    assert [file.name for file in (tmp_path / "next/wheels").iterdir()] == [wheel.name]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "say where the new clone begins"),
        (("TO={folder}/full",), "has files already"),
        (("TO={folder}/new", "FROM=nothing"), "'nothing' is no example"),
        (("TO={folder}/new", "NAME=A shop!"), "'A shop!' is no package name"),
    ],
)
def test_a_start_that_cannot_be(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    given = [word.format(folder=tmp_path) for word in words]
    done = run("make", "start", *given, cwd=ROOT, env=plain(tmp_path))
    assert done.returncode != 0
    assert told in done.stderr.splitlines()[0]
    assert not (tmp_path / "new").exists()
