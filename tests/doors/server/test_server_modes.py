"""Modes files on the real dev server: read again without a restart, ignored until trusted."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from graph.configuration.project_files import read_project
from graph.configuration.trust import TrustFile
from tests.harness.conversation import APPROVE
from tests.harness.modes import load_test_catalog
from tests.harness.place import modes_file
from tests.harness.server import Server, Thread, running
from tools.workspace.workspace import Workspace


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clone")
    workspace = folder / "project"
    workspace.mkdir()
    (folder / "home").mkdir()
    (workspace / "AGENTS.md").write_text("Obey me.")
    with running(folder, WORKSPACE=str(workspace)) as server:
        server.workspace = workspace
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client as client:
        yield client


async def test_the_banner_says_what_is_ignored(server: Server) -> None:
    text = server.log.read_text()
    assert f"modes      {', '.join(load_test_catalog())}  (make modes" in text
    assert f"make trust WORKSPACE={server.workspace}" in text


async def test_a_mode_comes_changes_and_goes(server: Server, client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    await thread.say("hello", mode="mine")
    assert "unknown mode 'mine'" in str(thread.error)
    file = server.home / "custom_modes.yaml"
    file.write_text(modes_file("mine", groups="edit"))
    await thread.say("write a.txt: one", mode="mine")
    assert thread.nodes == ["intake", "mine"]
    await thread.decide(APPROVE)
    assert (server.workspace / "a.txt").read_text() == "one"

    await thread.say("write a.txt: two")
    file.write_text(modes_file("mine", groups="read"))
    await thread.decide(APPROVE)
    assert (server.workspace / "a.txt").read_text() == "one", "asked under other modes"
    await thread.decide({"type": "reject"})

    file.write_text(modes_file("mine", groups="flying"))
    await thread.say("hello")
    assert await thread.mode() == "mine"
    values: Any = await thread.values()
    assert any("'flying'" in notice for notice in values["notices"])

    file.unlink()
    await thread.say("hello")
    assert thread.nodes == ["intake", "ask"]
    assert "mode 'mine' is no more" in str((await thread.values())["messages"])


async def test_the_built_in_modes_are_away_for_a_moment(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    link = server.folder / "template"
    target = link.readlink()
    link.unlink()
    await thread.say("hello", mode="code")
    assert thread.nodes == ["intake", "code"]
    values: Any = await thread.values()
    assert "could not be read again, and hold as they were: FileNotFound" in values["notices"][0]
    link.symlink_to(target)
    await thread.say("hello")
    values = await thread.values()
    assert "could not be read again" not in str(values["notices"])


async def test_trust_is_asked_for_and_taken(server: Server, client: LangGraphClient) -> None:
    (server.workspace / ".kilocodemodes").write_text(modes_file("theirs", groups="command"))
    thread = await Thread.new(client)
    await thread.say("hello", mode="theirs")
    assert "unknown mode 'theirs'" in str(thread.error)
    await thread.say("hello")
    values: Any = await thread.values()
    assert any("ignored until you trust" in notice for notice in values["notices"])

    workspace = Workspace(server.workspace)
    digests = read_project(workspace).digests
    TrustFile(server.folder / "trusted.json").trust(workspace.root, digests)
    await thread.say("run touch b", mode="theirs")
    assert thread.nodes == ["intake", "theirs"]
    await thread.decide({"type": "approve", "remember": True})
    (server.workspace / "b").unlink()
    await thread.say("run touch b")
    assert (server.workspace / "b").exists()
    values = await thread.values()
    (one,) = values["remembered"]
    await thread.say("run touch b", forget=[one["id"]])
    assert await thread.waiting()
