"""A clone without ``engine/`` runs on the engine's wheel."""

import os
import re
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from langgraph_sdk import get_client
from repository import copy_project
from tests.harness.clone import change, git
from tests.harness.conversation import APPROVE, SECONDS
from tests.harness.place import environment
from tests.harness.programs import run, run_well
from tests.harness.root import ENGINE
from tests.harness.server import Thread, free_port

pytestmark = pytest.mark.slow
UV = Path(sysconfig.get_path("scripts"), "uv")
CONVERSATION = """
import asyncio

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import modeshift
from graph.agent import build
from modeshift.graph.configuration.loading import AgentLoader
from modeshift.graph.configuration.settings import load_settings


async def talk():
    agent = build(AgentLoader(load_settings()).deps(), InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    values = await agent.ainvoke({"messages": [("user", "write notes.txt: hello")]}, config)
    asked = 0
    while "__interrupt__" in values:
        asked += 1
        values = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    print(modeshift.__file__, values["mode"], asked)


asyncio.run(talk())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not UV.exists():
        pytest.skip("uv, which builds the wheel, is not in this environment")
    folder = tmp_path_factory.mktemp("wheel")
    run_well(UV, "build", "--offline", "--quiet", "--wheel", "--out-dir", folder, ENGINE)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment that has the packages and programs of this one, and the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    # A path and no more: the .pth file there, which leads to the engine's source, is not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    scripts = Path(sysconfig.get_path("scripts", "venv", variables))
    for program in UV.parent.iterdir():
        if not program.name.startswith("modeshift") and not (scripts / program.name).exists():
            (scripts / program.name).symlink_to(program)
    python = scripts / "python"
    run_well(UV, "pip", "install", "--offline", "--quiet", "--no-deps", "--python", python, wheel)
    return python


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    copy_project(folder, wanted=lambda name: not name.startswith(("engine/", "docs/")))
    (folder / "workspace").mkdir()
    return folder


def place(clone: Path) -> dict[str, str]:
    modes, workspace = str(clone / "modes"), str(clone / "workspace")
    return environment(clone.parent, MODES_FOLDER=modes, WORKSPACE=workspace, MODEL="offline")


def test_all_that_git_knows_of_the_engine_is_in_the_wheel(wheel: Path) -> None:
    listed = git(ENGINE, "ls-files", "modeshift").stdout.split()
    with ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if not name.endswith("/")}
    assert set(listed) == {name for name in packed if name.startswith("modeshift/")}
    assert {"modeshift/page/index.html", "modeshift/py.typed"} <= packed


def test_the_clones_own_tests(python: Path, clone: Path) -> None:
    """As ``make test`` runs them where there is no ``engine/``."""
    command = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    said = run_well(*command, cwd=clone, env=place(clone))
    assert re.search(r"^\d+ passed", said, re.M), said
    change(clone / "graph/nodes.py", "step.ask_model(mode)", 'step.ask_model("ask")')
    done = run(*command, "tests/test_graph.py", cwd=clone, env=place(clone))
    assert "the model has the tools of another mode" in done.stdout
    planned = run_well("make", "-n", "check", cwd=clone)
    assert "pytest" in planned
    assert "engine" not in planned.replace(str(clone), "")


def test_commands_and_a_conversation(python: Path, clone: Path) -> None:
    variables = place(clone)
    shown = run_well(python, "-m", "modeshift", "modes", cwd=clone, env=variables)
    assert "built-in: modes/architect.yaml" in shown
    talked = run_well(python, "-c", CONVERSATION, cwd=clone, env=variables)
    file, mode, asked = talked.split()
    assert Path(file).is_relative_to(python.parent.parent), "the engine's own source was imported"
    assert (mode, asked) == ("code", "2")
    assert (clone / "workspace/notes.txt").read_text() == "hello"


@contextmanager
def serving(python: Path, clone: Path) -> Iterator[str]:
    """The address of the clone's dev server, which runs during the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "modeshift", "dev", "--port", str(port)]
    log = clone.parent / "log.txt"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=clone, env=place(clone), stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            end = time.monotonic() + SECONDS
            while "\naddress " not in log.read_text():
                assert server.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield url
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


async def test_the_dev_server(python: Path, clone: Path) -> None:
    with serving(python, clone) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/ok")).json()["ok"] is True
            page = await client.get("/app")
            assert page.content == (ENGINE / "modeshift/page/index.html").read_bytes()
            script = await client.get("/app/main.js")
            assert script.content == (ENGINE / "modeshift/page/main.js").read_bytes()
        async with get_client(url=url) as langgraph:
            thread = await Thread.new(langgraph)
            await thread.say("write notes.txt: hello")
            await thread.decide(APPROVE)
            await thread.decide(APPROVE)
            assert thread.error is None
            assert await thread.mode() == "code"
    assert (clone / "workspace/notes.txt").read_text() == "hello"
