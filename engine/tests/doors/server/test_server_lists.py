"""The real dev server's lists of runs and threads, which a crash sets back by some seconds."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import httpx
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph_sdk.client import LangGraphClient

from tests.harness.conversation import APPROVE, until
from tests.harness.server import Server, Thread, lose_checkpoint, running
from tests.provider.script import Step, say
from tests.provider.server import serving

pytestmark = pytest.mark.slow
LIST = ".langgraph_api/.langgraph_ops.pckl"


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
        running(tmp_path, MODEL="openai:gpt-5.5", **provider.settings) as server,
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
            ended, cut_off, left = (Thread(client, one.id) for one in (ended, cut_off, left))
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


async def test_an_approved_call_begins_once_its_approval_is_stored(tmp_path: Path) -> None:
    """Another program holds the lock of the file of threads meanwhile."""
    with running(tmp_path) as server:
        log = server.workspace / "log"
        async with server.client as client:
            thread = await Thread.new(client)
            await thread.say("run echo begun >> log", mode="code")
            other = sqlite3.connect(tmp_path / "checkpoints.sqlite", isolation_level=None)
            with closing(other):
                other.execute("BEGIN IMMEDIATE")
                decision: Any = {"resume": {"decisions": [APPROVE]}}
                run = asyncio.create_task(client.runs.wait(thread.id, "agent", command=decision))
                # The server gives up after some seconds, or the call begins.
                await until(lambda: run.done() or log.exists())
                server.kill()
            await asyncio.gather(run, return_exceptions=True)
        server.start()
        async with server.client as client:
            again = Thread(client, thread.id)
            for kept in await client.runs.list(thread.id):
                await client.runs.join(thread.id, kept["run_id"])
            if await again.waiting():
                await again.decide(APPROVE)
        assert log.read_text() == "begun\n"


async def test_a_step_without_its_checkpoint_goes_on(tmp_path: Path) -> None:
    """No node is next and nothing is asked, while the answer has a call."""
    with running(tmp_path) as server:
        async with server.client as client:
            thread, other = await Thread.new(client), await Thread.new(client)
            for each in (thread, other):
                await each.say("write a.txt: a", mode="code")
        server.kill()
        for each in (thread, other):
            lose_checkpoint(tmp_path, each.id)
        (server.folder / LIST).unlink(missing_ok=True)
        server.start()
        async with (
            server.client as client,
            httpx.AsyncClient(base_url=server.url, timeout=120) as http,
        ):
            thread, other = Thread(client, thread.id), Thread(client, other.id)
            state: Any = await client.threads.get_state(thread.id)
            assert (state["next"], state["interrupts"]) == ([], [])
            assert state["values"]["messages"][-1]["tool_calls"]
            question = f"/threads/{thread.id}/question"
            assert (await http.get(question)).json() == {
                "question": None, "previews": [], "is_cut_off": True,
            }  # fmt: skip
            await thread.run(input=None)
            assert (await http.get(question)).json()["is_cut_off"] is False
            await thread.decide(APPROVE)
            assert (server.workspace / "a.txt").read_text() == "a"
            await other.say("list")
            types = [message["type"] for message in (await other.values())["messages"]]
            assert types[:3] == ["human", "ai", "tool"]
            assert await list_texts(other) == ["write a.txt: a", "list"]


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
