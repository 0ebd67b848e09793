"""Own modes on the real dev server, and commands in the sandbox."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from httpx import HTTPStatusError

from tests.harness.conversation import APPROVE, SECONDS
from tests.harness.server import Server, Thread, Web
from tests.tools.sandbox.commands import needs_sandbox

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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With own modes, and with rules in the workspace that nobody has trusted yet."""
    server = Server(tmp_path_factory.mktemp("clone"))
    (server.home / "custom_modes.yaml").write_text(MODES)
    server.workspace = server.folder / "project"
    server.workspace.mkdir()
    (server.workspace / "AGENTS.md").write_text("Obey me.")
    server.start(WORKSPACE=str(server.workspace), SANDBOX="auto")
    yield server
    server.kill()


@needs_sandbox
async def test_a_command_runs_unasked_and_only_where_it_may(web: Web) -> None:
    made = web.file("made.txt")
    thread = await web.say("run echo made > made.txt", mode="code", approvals="auto")
    assert thread.nodes == ["intake", "code", "act", "code"]
    assert made.read_text() == "made\n"
    folder = web.server.folder
    await thread.say(f"run cat {folder}/home/* {folder}/*.sqlite; ls -A /tmp")
    shown = str(await thread.values())
    assert "roleDefinition: You run the tests" not in shown, "the agent's own files are hidden"
    assert "SQLite format" not in shown
    for mode in ("tester", "writer"):
        await thread.say(f"run echo evil > made.txt; touch {mode}.md", mode=mode)
        assert "act" in thread.nodes
        assert "could not change the workspace" in str(await thread.values())
        assert (made.read_text(), web.file(f"{mode}.md").exists()) == ("made\n", False)


async def test_a_second_answer_is_refused_and_approves_nothing_else(web: Web) -> None:
    """It does not wait for the first, whose run asks the next question.

    The approved command ends when all the others have been answered.
    """
    program = "run until [ -e others-done ]; do sleep 0.05; done\nwrite second-answer.txt: x"
    thread = await web.say(program, mode="code")
    await thread.look()
    resume: Any = {"decisions": [APPROVE]}
    refused: list[str] = []

    async def answer(**how: Any) -> str:
        try:
            await web.client.runs.wait(thread.id, "agent", command={"resume": resume}, **how)
        except HTTPStatusError as error:
            assert error.response.status_code == 409
            refused.append("conflict")
            if len(refused) == 3:
                web.file("others-done").touch()
            return "conflict"
        return "taken"

    ways: list[Any] = [{"multitask_strategy": name} for name in ("enqueue", "interrupt")]
    outcomes = await asyncio.gather(*(answer(**how) for how in ({}, {}, *ways)))
    assert sorted(outcomes) == ["conflict"] * 3 + ["taken"]
    assert await thread.asked() == ["write_file"]
    assert not web.file("second-answer.txt").exists()


async def test_an_answer_to_an_interrupt_that_is_gone_is_a_conflict(web: Web) -> None:
    """Else its client takes it for taken: LangGraph ignores it."""
    thread = await web.say("write one.txt: 1\nwrite two.txt: 2", mode="code")
    (first,) = (await web.client.threads.get_state(thread.id))["interrupts"]
    resume = {first["id"]: {"decisions": [APPROVE], "question": first["value"]["question"]}}
    given: Any = {"assistant_id": "agent", "command": {"resume": resume}}
    path = f"/threads/{thread.id}/runs/wait"
    assert [(await web.http.post(path, json=given)).status_code for _ in range(2)] == [200, 409]
    await until_asked(thread, "two.txt")


@pytest.mark.parametrize("way", ["/stream", "/wait", ""])
async def test_a_bare_answer_is_for_a_question_that_its_client_has_seen(web: Web, way: str) -> None:
    """A second click in a browser, on the question before, is none; nor is what others read."""
    http = web.http
    http.headers["origin"] = web.server.url
    lines = "write one.txt: 1\nwrite two.txt: 2\nwrite three.txt: 3"
    thread = await web.say(lines, mode="code")
    path = f"/threads/{thread.id}"
    bare: Any = {"assistant_id": "agent", "command": {"resume": {"decisions": [APPROVE]}}}

    async def click() -> int:
        return (await http.post(f"{path}/runs{way}", json=bare)).status_code

    assert await click() == 409, "asked a moment ago"
    await thread.look()
    assert await click() == 409, "another client has looked, this one has not"
    await http.get(f"{path}/state")
    assert await click() == 200
    assert await click() == 409, "the second click"
    await until_asked(thread, "two.txt")
    await thread.look()
    if not way:  # the answers of the others have ended with the question
        assert await click() == 409
        await http.post("/threads/search", json={})
    assert await click() == 200
    if not way:
        await until_asked(thread, "three.txt")
    answer = await http.post(f"{path}/runs/wait", json=bare)
    assert "which question you answer" in answer.json()["detail"]
    state = (await http.get(f"{path}/state")).json()
    named = {"checkpoint_id": state["checkpoint"]["checkpoint_id"]}
    assert (await http.post(f"{path}/runs/wait", json=bare | named)).status_code == 200
    assert not await thread.waiting()


async def until_asked(thread: Thread, file: str) -> None:
    async with asyncio.timeout(SECONDS):
        while await thread.asked("path") != [file]:
            await asyncio.sleep(0.02)
