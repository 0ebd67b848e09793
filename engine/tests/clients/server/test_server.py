"""The agent on the real dev server, driven by the real client."""

import asyncio
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from langgraph_sdk.schema import Command

from tests.harness import prefork
from tests.harness.conversation import APPROVE, until
from tests.harness.root import TEMPLATE
from tests.harness.server import Server, Thread, Web

BARE: Any = {"resume": {"decisions": [APPROVE]}}


async def test_from_ask_to_a_file(web: Web) -> None:
    thread = await web.say("write notes.txt: hello")
    assert thread.nodes == ["intake", "ask"]
    state: Any = await web.client.threads.get_state(thread.id)
    value = state["interrupts"][0]["value"]
    assert value["review_configs"] == [
        {"action_name": "switch_mode", "allowed_decisions": ["approve", "edit", "reject"]}
    ]
    (request,) = value["action_requests"]
    assert set(request) == {"name", "args", "description", "id"}
    assert (request["name"], request["args"]["mode_slug"]) == ("switch_mode", "code")
    await thread.decide(APPROVE)
    assert thread.nodes == ["review", "switch_mode", "code"]
    assert await thread.mode() == "code"
    assert await thread.asked() == ["write_file"]
    await thread.decide(APPROVE)
    assert (*thread.nodes[:2], thread.nodes[-1]) == ("review", "act", "code")
    assert web.file("notes.txt").read_text() == "hello"


async def test_a_key_of_the_clones_own_is_set_in_a_run(tmp_path: Path) -> None:
    server = Server(tmp_path)
    (tmp_path / "graph").unlink()
    shutil.copytree(TEMPLATE / "graph", tmp_path / "graph")
    state = tmp_path / "graph/state.py"
    keys = "\n    ticket: str\n    lines: tuple[int, ...]\n    opened: datetime.date\n"
    state.write_text(state.read_text().replace("import", "import datetime\n\nimport", 1) + keys)
    server.workspace.mkdir()
    server.start(MODEL="offline")
    try:
        async with server.client as client:
            thread = await Thread.new(client)
            await thread.say("hello", ticket="AB-1")
            assert (await thread.values())["ticket"] == "AB-1"
            await thread.run(command={"update": {"ticket": "AB-2"}})
            assert (await thread.values())["ticket"] == "AB-2"
            typed = {"lines": [4, 2], "opened": "2026-11-28"}
            await thread.say("hello", **typed)
            await thread.say("hello")  # the first turn's end is read from a checkpoint
            assert typed.items() <= (await thread.values()).items()
            wrong = {"ticket": 5, "tickets": "AB-1", "lines": ["4"], "opened": "today"}
            for key, value in wrong.items():
                with pytest.raises(UnprocessableEntityError, match=key):
                    await thread.say("hello", **{key: value})
    finally:
        server.kill()


WRONG: list[tuple[Any, list[str]]] = [
    ({"decisions": []}, ["0 decisions for 1 action requests"]),
    ({"decisions": [{"type": "yes"}]}, ["'yes'", "'approve'"]),
    ("approve", ["InvalidInputError"]),
]


async def test_wrong_input_is_explained_and_changes_nothing(web: Web) -> None:
    """To the client and in the log: our words only."""

    async def attempt(resume: Any, texts: list[str]) -> None:
        thread = await web.say("write wrong.txt: x")
        before = await thread.values()
        await thread.look()
        await thread.run(command={"resume": resume})
        assert thread.error is not None
        shown = " ".join(thread.error.values())
        for text in texts:
            assert text in shown
            assert text in web.server.log.read_text()
        assert "pydantic" not in shown
        with pytest.raises(UnprocessableEntityError, match="unknown mode 'kode'; the modes are"):
            await web.client.threads.update_state(thread.id, {"mode": "kode"})
        assert await thread.values() == before
        assert len(await thread.waiting()) == 1

    server = web.server
    length = len(server.log.read_text())
    await asyncio.gather(*(attempt(*row) for row in WRONG))
    with socket.create_connection((server.host, server.port)) as closing:  # as a tab that is closed
        head = b"POST /threads/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        closing.sendall(head + b"Content-Type: application/json\r\n\r\n{")
    await attempt(*WRONG[0])
    log = server.log.read_text()[length:]
    for text in ("Traceback", "format_exc_info", "encountered an error", "/threads/search"):
        assert text not in log


async def test_a_run_cannot_be_deleted_and_its_thread_can(web: Web) -> None:
    """The server would take the run's checkpoints out of the thread."""
    client, thread = web.client, await web.say("list")
    before = await client.threads.get_state(thread.id)
    (run,) = await client.runs.list(thread.id)
    with pytest.raises(UnprocessableEntityError, match="delete the thread"):
        await client.runs.delete(thread.id, run["run_id"])
    assert await client.threads.get_state(thread.id) == before
    assert await client.runs.list(thread.id) == [run]
    await client.threads.delete(thread.id)
    with pytest.raises(NotFoundError):
        await client.threads.get_state(thread.id)


@pytest.mark.parametrize("how", ["ended", "stopped"])
async def test_a_thread_is_not_deleted_while_it_has_a_run(web: Web, how: str) -> None:
    """The turn went on without it, to calls that had not begun, and the next start had it again."""
    client, name = web.client, f"delete-{how}"
    text = f"run touch {name}; until [ -e {name}-go ]; do sleep 0.1; done & write {name}-2: x"
    thread = await web.say(text, mode="code")
    state: Any = await client.threads.get_state(thread.id)
    answer = {"decisions": [APPROVE] * 2, "question": state["interrupts"][0]["value"]["question"]}
    run = await client.runs.create(thread.id, "agent", command=Command(resume=answer))
    await until(web.file(name).exists)
    with pytest.raises(ConflictError, match="has a run"):
        await client.threads.delete(thread.id)
    if how == "stopped":
        await client.runs.cancel(thread.id, run["run_id"])
    else:
        web.file(f"{name}-go").touch()
        await client.runs.join(thread.id, run["run_id"])
    await client.threads.delete(thread.id)
    with closing(sqlite3.connect(web.server.folder / "checkpoints.sqlite")) as database:
        for table in ("checkpoints", "writes", "effects", "audit"):
            count = f"SELECT count(*) FROM {table} WHERE thread_id = ?"  # noqa: S608
            assert database.execute(count, (thread.id,)).fetchone() == (0,), table


async def test_an_answer_may_name_the_checkpoint_of_its_question_and_no_other(web: Web) -> None:
    """As chat UIs do that show a thread's history."""
    thread = await web.say("run echo once >> named.log", mode="code")
    state: Any = await web.client.threads.get_state(thread.id)
    named = {"resume": {**BARE["resume"], "question": await thread.question()}}
    await thread.run(command=BARE, checkpoint=state["checkpoint"])
    assert thread.error is None
    older = {"checkpoint_id": state["checkpoint"]["checkpoint_id"]}
    with pytest.raises(ConflictError, match="the thread has gone on"):
        await thread.run(command=BARE)
    ways: list[Any] = [{"checkpoint": state["checkpoint"]}, older, {"context": older}]
    for question in (None, "run echo twice >> named.log"):
        if question:
            await thread.say(question)
        for given in (*ways, {"config": {"configurable": older}}):
            for answer in (BARE, named):
                with pytest.raises(ConflictError, match="the thread has gone on"):
                    await thread.run(command=answer, **given)
    assert web.file("named.log").read_text() == "once\n"


async def test_a_program_answers_at_once_as_langgraphs_docs_show_it(web: Web) -> None:
    """Stream until the interrupt, read the state or not, resume; six times, with no waiting."""
    approve = [Command(resume={"decisions": [APPROVE]})] * 2
    for number in range(6):
        thread, name = await Thread.new(web.client), f"at-once-{number}.txt"
        said: Any = {"input": {"messages": [{"role": "user", "content": f"write {name}: x"}]}}
        for given in (said, *({"command": each} for each in approve)):
            async for part in web.client.runs.stream(thread.id, "agent", **given):
                assert part.event != "error", part
            if number % 2:
                await thread.values()
        assert web.file(name).read_text() == "x"


async def test_the_clients_event_streaming_is_told_what_to_use(client: LangGraphClient) -> None:
    with pytest.raises(httpx.HTTPStatusError) as caught:
        async with client.threads.stream(assistant_id="agent") as stream:
            await stream.run.start(input={"messages": []})
    assert "use client.runs.stream" in caught.value.response.json()["detail"]


async def test_marked_as_resolved_in_agent_chat_ui(web: Web) -> None:
    thread = await web.say("write resolved.txt: x", mode="code")
    state: Any = await web.client.threads.get_state(thread.id)
    await thread.run(input={}, command={"goto": "__end__"}, checkpoint=state["checkpoint"])
    assert (thread.error, thread.nodes) == (None, [])
    assert (await web.client.threads.get(thread.id))["status"] == "idle"
    assert not await thread.waiting()
    await thread.say("hello")
    assert thread.nodes == ["intake", "code"]
    assert not web.file("resolved.txt").exists()


async def test_a_long_turn(web: Web) -> None:
    """LangGraph stops a run after 25 steps by default, and the server has its own default."""
    thread = await web.say("\n".join(["search nothing"] * 60))
    assert thread.error is None
    assert thread.nodes.count("act") == 60
    await thread.run(input={"compact": True})
    assert thread.nodes == ["intake", "compact_history"]
    state, *earlier = list[Any](await web.client.threads.get_history(thread.id, limit=3))
    first, *_, last = state["values"]["messages"]
    assert "The user said:\n- search nothing search" in first["content"]
    assert "tokens instead of" in state["values"]["notices"][0]
    for before in earlier:
        assert len(before["values"]["messages"]) == 122
        assert before["values"]["messages"][-1] == last


async def test_the_graph_and_its_input_can_be_seen(client: LangGraphClient) -> None:
    """What Studio draws, and the form that it shows."""
    (agent,) = await client.assistants.search()
    drawn: Any = await client.assistants.get_graph(agent["assistant_id"])
    nodes = {node["id"] for node in drawn["nodes"]}
    assert {"ask", "architect", "code", "debug", "review", "act", "switch_mode"} <= nodes
    schemas: Any = await client.assistants.get_schemas(agent["assistant_id"])
    keys = {"messages", "mode", "limit", "approvals", "forget", "compact", "end_subtask"}
    assert keys <= schemas["input_schema"]["properties"].keys()


async def test_commands_that_wait_hold_up_no_other_thread(web: Web) -> None:
    """As many as once were all the runs that could go on at a time."""

    async def wait(number: int) -> Thread:
        command = f"run touch waits{number}; until [ -e all-may-end ]; do sleep 0.2; done"
        thread = await web.say(command, mode="code")
        await thread.decide(APPROVE)
        return thread

    runs = [asyncio.create_task(wait(number)) for number in range(10)]
    await until(lambda: len([*web.server.workspace.glob("waits*")]) == len(runs))
    try:
        other = await web.say("list")
        assert not any(run.done() for run in runs), "a command may have come to its time limit"
    finally:
        web.file("all-may-end").touch()
    await asyncio.gather(*runs)
    assert "waits0" in str(await other.values())


def test_clean_data_leaves_what_a_server_works_with(server: Server) -> None:
    done = prefork.run("modeshift", "clean-data", env=server.environment(), cwd=server.folder)
    assert "a server, a chat or an editor is at work with" in done.stderr
    assert (server.folder / "checkpoints.sqlite").exists()
