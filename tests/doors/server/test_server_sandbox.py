"""Commands on the real dev server: in the sandbox, shown while they run, one answer at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from httpx import HTTPStatusError
from langgraph_sdk.client import LangGraphClient

from tests.harness.conversation import APPROVE
from tests.harness.server import Server, Thread, running
from tools.processes.sandboxes import NoSandbox, find_sandbox

MODES = """
customModes:
  - slug: tester
    name: Tester
    roleDefinition: You run the tests.
    groups: [read, command]
  - slug: writer
    name: Writer
    roleDefinition: You write documents.
    groups: [read, [edit, {fileRegex: '\\.md$'}], command]
"""
FOUND = find_sandbox()
needs_sandbox = pytest.mark.skipif(isinstance(FOUND, NoSandbox), reason=str(FOUND))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clone")
    (folder / "home").mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    with running(folder, SANDBOX="auto", APPROVALS="auto") as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client as client:
        yield client


@needs_sandbox
async def test_it_says_so(server: Server) -> None:
    assert "commands   in a sandbox, no network" in server.log.read_text()


@needs_sandbox
async def test_a_command_runs_unasked_and_only_where_it_may(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say("run echo made > made.txt", mode="code")
    assert thread.nodes == ["intake", "code", "act", "code"]
    assert (server.workspace / "made.txt").read_text() == "made\n"
    for mode in ("tester", "writer"):
        await thread.say(f"run echo evil > made.txt; touch {mode}.md", mode=mode)
        assert "act" in thread.nodes
        assert "could not change the workspace" in str(await thread.values())
        assert (server.workspace / "made.txt").read_text() == "made\n"
        assert not (server.workspace / f"{mode}.md").exists()


@needs_sandbox
async def test_output_comes_while_it_runs(server: Server, client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    heard: list[tuple[float, dict[str, Any]]] = []
    given: Any = {"messages": [{"role": "user", "content": "run echo one; sleep 1; echo two"}]}
    given["mode"] = "code"
    async for part in client.runs.stream(thread.id, "agent", input=given, stream_mode=["custom"]):
        if part.event == "custom":
            heard.append((asyncio.get_running_loop().time(), part.data))
    assert [data["text"] for _, data in heard] == ["one\n", "two\n"]
    assert heard[1][0] - heard[0][0] > 0.5
    (call,) = {data["tool_call_id"] for _, data in heard}
    assert call in str(await thread.values())


@needs_sandbox
async def test_the_agents_own_files_are_hidden(server: Server, client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    home = server.folder / "home"
    await thread.say(f"run cat {home}/* {server.folder}/*.sqlite; ls -A /tmp", mode="code")
    shown = str(await thread.values())
    assert "roleDefinition: You run the tests" not in shown
    assert "SQLite format" not in shown


async def test_a_second_answer_does_not_wait_for_the_first(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say("write .env: x", approvals="manual", mode="code")
    resume: Any = {"decisions": [APPROVE]}

    async def answer(**how: Any) -> str:
        try:
            await client.runs.wait(thread.id, "agent", command={"resume": resume}, **how)
        except HTTPStatusError as error:
            assert error.response.status_code == 409
            return "conflict"
        return "taken"

    strategies: list[dict[str, Any]] = [{}, {}]
    strategies += [{"multitask_strategy": name} for name in ("enqueue", "interrupt")]
    outcomes = await asyncio.gather(*(answer(**how) for how in strategies))
    assert sorted(outcomes) == ["conflict"] * 3 + ["taken"]
    assert (server.workspace / ".env").read_text() == "x"


async def test_a_second_click_approves_nothing_else(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say("write two.txt: x", approvals="manual", mode="ask")
    resume: Any = {"decisions": [APPROVE]}
    clicks = [client.runs.wait(thread.id, "agent", command={"resume": resume}) for _ in range(2)]
    outcomes = await asyncio.gather(*clicks, return_exceptions=True)
    assert sum(isinstance(outcome, HTTPStatusError) for outcome in outcomes) == 1
    assert [each["name"] for each in await thread.waiting()] == ["write_file"]
    assert not (server.workspace / "two.txt").exists()
