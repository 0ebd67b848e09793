"""The real dev server, killed as by a power cut, and started again."""

import asyncio
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph_sdk.client import LangGraphClient

from tests.clients.server.test_auth import ALICE, BOB, SETTINGS, status_of
from tests.harness.conversation import APPROVE, SECONDS, until
from tests.harness.server import Server, Thread, running
from tests.harness.sleepers import new_mark, wait_for
from tests.provider.script import Answer, Call, Step, say
from tests.provider.server import serving

pytestmark = pytest.mark.slow
LIST = ".langgraph_api/.langgraph_ops.pckl"
WRITE = Call("write_file", {"path": "a", "content": "x"})
NOBODYS_CHECKPOINT = """
    INSERT INTO checkpoints SELECT ?, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
    checkpoint, '{}' FROM checkpoints WHERE thread_id = ? LIMIT 1
"""


QUICK = """
import runpy, threading
wait = threading.Event.wait
threading.Event.wait = lambda self, timeout=None: wait(self, 0.3 if timeout == 10 else timeout)
runpy.run_module("modeshift", run_name="__main__", alter_sys=True)
"""
"""The same server, but that it writes its lists as soon as there is something in them."""
PARTS = "task in ask: list\ntask in code: write part.txt: x\ntask in ask: read part.txt"


@contextmanager
def running_quickly(folder: Path, **settings: str) -> Iterator[Server]:
    server = Server(folder)
    (folder / "quick.py").write_text(QUICK)
    server.start("quick", "dev", "--port", str(server.port), **settings)
    try:
        yield server
    finally:
        server.kill()


async def test_questions_outlive_the_server_and_no_call_is_run_again(tmp_path: Path) -> None:
    """Killed while the second call runs: the first has run once, and so has the second."""
    with running(tmp_path) as server:
        log = server.workspace / "log"
        async with server.client as client:
            asking, acting = await Thread.new(client), await Thread.new(client)
            parted = await Thread.new(client)
            await asyncio.gather(
                asking.say("write kept.txt: hello", mode="code"),
                acting.say("run echo one >> log & run echo two >> log; sleep 60", mode="code"),
                parted.say(PARTS, mode="ask"),
            )
            await parted.decide(APPROVE)
            await parted.decide(APPROVE)
            before = await asking.waiting()
            run = asyncio.create_task(acting.decide(APPROVE, APPROVE))
            await until(lambda: log.exists() and "two" in log.read_text())
            # The server writes the checkpoint with the first result while the second call runs.
            async with asyncio.timeout(SECONDS):
                while "tool" not in await list_types(acting):
                    await asyncio.sleep(0.05)
            server.kill()
            await asyncio.gather(run, return_exceptions=True)
        server.start(BOUND_ANSWERS="true")
        async with server.client as client:
            acting = await reopened(client, acting)
            assert await list_types(acting) == ["human", "ai", "tool"]
            await acting.run(input=None)
            messages = (await acting.values())["messages"]
            assert await list_types(acting) == ["human", "ai", "tool", "tool", "ai"]
            assert "may have taken effect" in messages[3]["content"]
            assert log.read_text() == "one\ntwo\n"

            asking = await reopened(client, asking)
            assert await asking.waiting() == before
            await asking.run(command={"resume": {"decisions": [APPROVE]}})
            assert "must name its question" in str(asking.error)
            for thread in (asking, parted, parted):
                await (await reopened(client, thread)).decide(APPROVE)
            values = await (await reopened(client, parted)).values()
            assert [task["files"] for task in values["subtasks"]] == [[], ["part.txt"], []]
            assert (values["mode"], values["parents"]) == ("ask", [])
        assert (server.workspace / "kept.txt").read_text() == "hello"


async def test_what_runs_in_the_background_ends_with_the_run_and_the_server(tmp_path: Path) -> None:
    """A run that is cancelled, and a server that is told to stop while a person is asked."""
    marks = {"read": new_mark(), "write": new_mark()}
    calls = {"read": Call("read_output", {"id": "?", "wait": 600}), "write": WRITE}

    def answer(messages: Sequence[BaseMessage]) -> Step:
        said, last = messages[0].text, messages[-1]
        if last.type == "human":
            command = {"command": f"sleep {marks[said]}", "background": True}
            return Answer("", (Call("execute_command", command),))
        if last.type == "tool" and (found := re.search("id='(.*)'", last.text)):
            return Answer("", (replace_id(calls[said], found[1]),))
        return say("Done.")

    with (
        serving(answer) as provider,
        running(tmp_path, MODEL="openai:gpt-5.5", **provider.settings) as server,
    ):
        async with server.client as client:
            reading, asking = await Thread.new(client), await Thread.new(client)
            for thread, said in ((reading, "read"), (asking, "write")):
                await thread.say(said, mode="code")
            run = asyncio.create_task(reading.decide(APPROVE))
            await asking.decide(APPROVE)
            for mark in marks.values():
                await wait_for(True, mark)
            (listed,) = await client.runs.list(reading.id, status="running")
            await client.runs.cancel(reading.id, listed["run_id"], wait=True)
            await asyncio.gather(run, return_exceptions=True)
            await wait_for(False, marks["read"])
            assert await asking.waiting()
            await wait_for(True, marks["write"])
        await server.stop()
        await wait_for(False, marks["write"])


def replace_id(call: Call, id: str) -> Call:
    assert isinstance(call.args, dict)
    return Call(call.name, {**call.args, "id": id} if "id" in call.args else call.args)


async def list_types(thread: Thread) -> list[str]:
    return [message["type"] for message in (await thread.values())["messages"]]


async def test_what_is_lost_with_the_list_of_threads(tmp_path: Path) -> None:
    """Killed when the list was written between a thread's creation and its first run.

    That thread shows its question; one that the list lacks is its owner's as before, and one in
    which nobody said anything is the owner's to create again.
    """
    lists, old = tmp_path / ".langgraph_api", tmp_path / "old"
    with running_quickly(tmp_path, **SETTINGS) as server:
        async with server.get_client(ALICE) as alice:
            listed = await Thread.new(alice)
            await keep_list(server, listed.id)
            shutil.copytree(lists, old)
            created = await alice.threads.create(metadata={"title": "Lost"})
            lost = Thread(alice, created["thread_id"])
            for thread in (listed, lost):
                await thread.say(f"write {thread.id}: x")
                assert await thread.waiting()
            silent = await Thread.new(alice)
            await alice.threads.update_state(silent.id, {"mode": "ask"})
        server.kill()
        shutil.rmtree(lists)
        old.rename(lists)
        nobodys = str(uuid4())
        with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite")) as database, database:
            database.execute(NOBODYS_CHECKPOINT, (nobodys, lost.id))
        server.start(**SETTINGS)
        async with server.get_client(ALICE) as alice, server.get_client(BOB) as bob:
            assert await Thread(alice, listed.id).waiting()
            for attempt in (
                bob.threads.create(thread_id=lost.id),
                bob.threads.create(thread_id=silent.id),
                bob.threads.create(thread_id=nobodys),
                bob.threads.create(thread_id=lost.id.upper(), if_exists="do_nothing"),
                bob.runs.wait(nobodys, "agent", input=None, if_not_exists="create"),
                bob.runs.create(silent.id, "agent", if_not_exists="create"),
                bob.threads.get_state(lost.id),
                bob.threads.copy(lost.id),
            ):
                assert await status_of(attempt) in (404, 409)
            assert await (await reopened(alice, silent)).mode() == "ask"
            known = {thread["thread_id"]: thread for thread in await alice.threads.search()}
            assert known.keys() == {listed.id, lost.id, silent.id}
            assert known[lost.id]["status"] == known[listed.id]["status"] == "interrupted"
            assert (known[lost.id]["metadata"] or {})["title"] == "Lost"
            assert await bob.threads.search() == []
            again = Thread(alice, lost.id)
            assert await again.waiting()
            await again.decide(APPROVE)
            assert (server.workspace / lost.id).read_text() == "x"


async def test_an_answer_that_is_given_again_answers_no_other_question(tmp_path: Path) -> None:
    """The server's list, when it was written last, has the first answer's run as running."""
    with running_quickly(tmp_path) as server:
        kept, go = server.folder / LIST, server.workspace / "go"
        async with server.client as client:
            thread = await Thread.new(client)
            wait = "run echo begun >> log; until [ -e go ]; do sleep 0.1; done"
            await thread.say(f"{wait}\nrun touch second", mode="code")
            state: Any = await client.threads.get_state(thread.id)
            # As chat UIs name the checkpoint that they show; here where it is least looked for.
            given: Any = {"command": {"resume": {"decisions": [APPROVE]}}}
            named = {"checkpoint_id": state["checkpoint"]["checkpoint_id"]}
            given["config"] = {"configurable": named}
            run: Any = await client.runs.create(thread.id, "agent", **given)
            assert named["checkpoint_id"] not in str(run["kwargs"])
            kept.unlink(missing_ok=True)
            await until(lambda: kept.exists() and b"running" in kept.read_bytes())
            list_then = kept.read_bytes()
            go.touch()
            await client.runs.join(thread.id, run["run_id"])
            second = await thread.waiting()
            assert second[0]["args"]["command"] == "touch second"
        server.kill()
        kept.write_bytes(list_then)
        server.start()
        async with server.client as client:
            again = Thread(client, thread.id)
            await client.runs.join(thread.id, run["run_id"])
            assert await again.waiting() == second
            assert not (server.workspace / "second").exists()
            await again.decide(APPROVE)
            assert (server.workspace / "second").exists()
        assert (server.workspace / "log").read_text() == "begun\n"


async def reopened(client: LangGraphClient, thread: Thread) -> Thread:
    """The thread on the restarted server, which may not have saved its list of threads."""
    await client.threads.create(thread_id=thread.id, if_exists="do_nothing", graph_id="agent")
    return Thread(client, thread.id)


# The lists of runs and threads, which a crash sets back by some seconds.


class Model:
    """Answers each message once it may, and counts how often it was asked for it."""

    def __init__(self, *held: str) -> None:
        self.may_answer = {text: Event() for text in held}
        self.asked = Counter[str]()

    def __call__(self, messages: Sequence[BaseMessage]) -> Step:
        text = [message.text for message in messages if isinstance(message, HumanMessage)][-1]
        self.asked[text] += 1
        if event := self.may_answer.get(text):
            event.wait()
        return say("Done.")

    def free(self, *texts: str) -> None:
        for text in texts or self.may_answer:
            self.may_answer[text].set()


async def begin(client: LangGraphClient, thread: Thread | None, text: str) -> str:
    """Start a run in the background; gives its id."""
    given: Any = {"messages": [{"role": "user", "content": text}]}
    where: Any = thread.id if thread else None
    return str((await client.runs.create(where, "agent", input=given))["run_id"])


async def keep_list(server: Server, *ids: str) -> bytes:
    """The server's list of runs, once it has written one with these."""
    file = server.folder / LIST
    marks = [UUID(id).int.to_bytes(16, "little") for id in ids]
    await until(lambda: file.exists() and all(mark in file.read_bytes() for mark in marks))
    return file.read_bytes()


async def list_texts(thread: Thread) -> list[str]:
    return [
        message["content"]
        for message in (await thread.values())["messages"]
        if message["type"] == "human"
    ]


async def test_an_input_is_taken_once(tmp_path: Path) -> None:
    """Those that had ended, were cut off, or waited when the list was written last."""
    model = Model("first", "cut off", "left", "stateless")
    with (
        serving(model) as provider,
        running_quickly(tmp_path, MODEL="openai:gpt-5.5", **provider.settings) as server,
    ):
        async with server.client as client:
            ended, cut_off, left = [await Thread.new(client) for _ in range(3)]
            runs = [
                await begin(client, ended, "first"),
                await begin(client, ended, "second"),
                await begin(client, cut_off, "cut off"),
                await begin(client, cut_off, "behind it"),
                await begin(client, left, "left"),
                await begin(client, None, "stateless"),
            ]
            listed = await keep_list(server, *runs)
            await until(lambda: model.asked.keys() == model.may_answer.keys())
            model.free("first", "stateless")
            await client.runs.join(ended.id, runs[1])
        server.kill()
        model.free()
        (server.folder / LIST).write_bytes(listed)
        server.start(MODEL="openai:gpt-5.5", **provider.settings)
        async with (
            server.client as client,
            httpx.AsyncClient(base_url=server.url, timeout=120) as http,
        ):
            ended, cut_off, left = (Thread(client, thread.id) for thread in (ended, cut_off, left))
            await client.runs.join(cut_off.id, runs[3])
            assert await list_texts(cut_off) == ["cut off", "behind it"]
            assert await list_texts(ended) == ["first", "second"]
            statuses = {
                run["run_id"]: run["status"]
                for thread in (ended, cut_off, left)
                for run in await client.runs.list(thread.id)
            }
            assert [statuses[run] for run in runs[:5]] == [
                *["interrupted"] * 3, "success", "interrupted",
            ]  # fmt: skip
            assert {*model.asked.values()} == {1}
            threads = await client.threads.search()
            assert {thread["thread_id"]: thread["status"] for thread in threads} == {
                ended.id: "idle", cut_off.id: "idle", left.id: "interrupted",
            }  # fmt: skip
            question = f"/threads/{left.id}/question"
            assert (await http.get(question)).json()["is_cut_off"] is True
            await left.run(input=None)
            assert await list_texts(left) == ["left"]
            assert (await left.values())["messages"][-1]["content"] == "Done."
            assert (await http.get(question)).json()["is_cut_off"] is False


async def test_a_list_has_the_threads_of_its_own_clone(tmp_path: Path) -> None:
    """All clones of a user have one file of checkpoints."""
    shared = {"CHECKPOINTS": str(tmp_path / "shared.sqlite")}
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with running(tmp_path / name, **shared) as server:
            async with server.client as client:
                thread = await Thread.new(client)
                await thread.say("list")
            server.kill()
            server.start(**shared)
            async with server.client as client:
                (known,) = await client.threads.search()
                assert (known["thread_id"], known["status"]) == (thread.id, "idle")
