"""LangGraph's own Agent Server takes the project: its configuration, its image, its own threads."""

import json
import sqlite3
import sysconfig
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from repository import ROOT, copy_project, has_clone

from tests.harness import prefork
from tests.harness.conversation import APPROVE
from tests.harness.place import environment
from tests.harness.programs import run_well
from tests.harness.server import Server, Thread

UV = Path(sysconfig.get_path("scripts"), "uv")
PLATFORM = "langgraph.platform.json"
OWN = ("checkpointer", "store")
ONLY_USER = "token-of-its-only-user"


def test_the_platforms_configuration_is_the_clones_without_where_threads_are_kept() -> None:
    dev, platform = (json.loads((ROOT / name).read_text()) for name in ("langgraph.json", PLATFORM))
    assert platform == {key: value for key, value in dev.items() if key not in OWN}
    assert dev.keys() & set(OWN), "otherwise one file is enough"


@pytest.mark.parametrize("name", ["langgraph.json", PLATFORM])
def test_the_platforms_tool_accepts_the_project(name: str, tmp_path: Path) -> None:
    image = tmp_path / "Dockerfile"
    variables = environment(tmp_path, LANGGRAPH_CLI_NO_ANALYTICS="1")
    for command in (["validate"], ["dockerfile", str(image)]):
        done = prefork.run(
            "langgraph_cli", *command, "-c", str(ROOT / name), env=variables, cwd=ROOT
        )
        assert done.returncode == 0, done.stdout + done.stderr
    text = image.read_text()
    assert """ENV LANGSERVE_GRAPHS='{"agent": "graph.agent:agent"}'""" in text
    assert '"path": "modeshift.server.auth:auth"' in text
    assert ("LANGGRAPH_CHECKPOINTER" in text) is (name != PLATFORM)


def test_the_image_can_install_the_clone(tmp_path: Path) -> None:
    """As its ``pip install .`` does; without a word on what is a package it fails."""
    copy_project(tmp_path, wanted=has_clone)
    run_well(UV, "build", "--offline", "--wheel", "--out-dir", tmp_path / "dist", tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert {"graph/agent.py", "tools/__init__.py"} <= {*ZipFile(wheel).namelist()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that keeps threads itself, as the platform does; here in memory."""
    server = Server(tmp_path_factory.mktemp("clone"))
    (server.folder / "langgraph.json").unlink()
    (server.folder / "langgraph.json").symlink_to(ROOT / PLATFORM)
    server.start(AUTH_TOKEN=ONLY_USER)
    yield server
    server.kill()


async def test_threads_that_the_platform_keeps(server: Server) -> None:
    headers = {"Authorization": f"Bearer {ONLY_USER}"}
    async with (
        server.get_client(ONLY_USER) as client,
        httpx.AsyncClient(base_url=server.url, headers=headers, timeout=120) as http,
    ):
        setting = {"mode": "code", "limit": "ask"}
        created = (await http.post("/modeshift/threads", json=setting)).json()
        thread = Thread(client, created["thread_id"])
        path = f"/threads/{thread.id}/mode"
        assert (await http.get(path)).json()["is_pending"]
        await thread.say("write kept.txt: 1")
        assert not await thread.waiting(), "it is limited"
        assert (await http.get(path)).json() | {"mode": "code"} == {
            "mode": "code", "limit": "ask", "approvals": "manual", "is_pending": False,
                "remembered": [],
        }  # fmt: skip
        await http.patch(path, json={"limit": None, "mode": "code"})
        await thread.say("write kept.txt: 1")
        await thread.decide(APPROVE)
        assert (server.workspace / "kept.txt").read_text() == "1"
        assert (await http.get("/threads/" + thread.id)).status_code == 200
    assert not _has_checkpoints(server.folder / "checkpoints.sqlite")


def _has_checkpoints(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as database:
        return bool(database.execute("SELECT count(*) FROM checkpoints").fetchone()[0])
