"""The audit on both databases: whatever is changed in it is found, and nothing is in it twice."""

import asyncio
import json
from dataclasses import replace
from uuid import uuid4

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, Overwrite, StateUpdate

from modeshift.agent import open_agent
from modeshift.modes.errors import StorageError
from modeshift.storage.database import Database
from modeshift.storage.threads import open_saver, prepare_tables
from modeshift.thread import APPROVE, Thread
from modeshift.threads.audit import append_entry, find_breaks, find_changed, read_entries
from modeshift.threads.journal import Journal
from tests.clients.commands.conftest import Run, run
from tests.harness.conversation import SECONDS, until
from tests.harness.place import UserFolders
from tests.tables import rows

__all__ = ["run"]


async def fill(database: Database, *names: str, thread: str = "thread") -> None:
    journal = Journal(database)
    for name in names:
        await append_entry(journal, thread, name, {"kind": "call", "tool": name})


async def test_entries_are_a_chain_whoever_writes_at_once(database: Database) -> None:
    await asyncio.gather(*[fill(database, name) for name in "abcdefgh"])
    await asyncio.gather(*[fill(database, name) for name in "abc"])  # a step that comes again
    entries = await read_entries(database, "thread")
    assert sorted(entry.values["tool"] for entry in entries) == list("abcdefgh")
    assert [*find_breaks(entries)] == []


@rows(
    "statement problem",
    ("UPDATE audit SET entry = replace(entry, 'b', 'x') WHERE number = 2", "entry 2 is not"),
    ("UPDATE audit SET digest = 'x' WHERE number = 2", "entry 2 is not"),
    ("DELETE FROM audit WHERE number = 2", "entry 2 is missing: the next one is 3"),
    ("DELETE FROM audit WHERE number = 1", "entry 1 is missing: the next one is 2"),
    ("UPDATE audit SET thread_id = 'x' WHERE number = 2", "entry 2 is missing"),
    ("UPDATE audit SET number = 9 WHERE number = 2", "entry 2 is missing"),
    (
        "UPDATE audit SET entry = (SELECT entry FROM audit WHERE number = 3), "
        "digest = (SELECT digest FROM audit WHERE number = 3) WHERE number = 2",
        "entry 2 is not",
    ),
)
async def test_a_changed_line_found(database: Database, statement: str, problem: str) -> None:
    await fill(database, *"abc")
    await database.execute(statement)
    (found, *_) = find_breaks(await read_entries(database, "thread"))
    assert found.startswith(problem)


async def test_a_deleted_thread_leaves_its_last_digest(database: Database) -> None:
    await prepare_tables(database)
    await fill(database, *"ab")
    await fill(database, "c", thread="another")
    last = (await read_entries(database, "thread"))[-1].digest
    async with open_saver(database) as saver:
        await saver.adelete_thread("thread")
    assert await read_entries(database, "thread") == []
    assert len(await read_entries(database, "another")) == 1
    ends = await database.execute("SELECT thread_id, number, digest FROM audit_ends")
    assert ends == [("thread", 2, last)]


async def answer(thread: Thread, question: Interrupt) -> None:
    await thread.answer(question, [APPROVE])


async def talk(place: UserFolders) -> Thread:
    """A call that is approved, one that is denied, and two that nobody is asked about."""
    async with open_agent(place.settings()) as agents:
        thread = agents.thread()
        question = await thread.say("write a.txt: a & write b.txt: b", mode="code")
        assert question is not None
        await thread.answer(question, [APPROVE, {"type": "reject"}])
        await thread.set(approvals="auto")
        assert await thread.say("write c.txt: c") is None
        assert await thread.say("read a.txt") is None
    return thread


async def test_who_decided_what_and_what_has_run(place: UserFolders) -> None:
    thread = await talk(place)
    database = place.settings().open_database()
    entries = [entry.values for entry in await read_entries(database, thread.id)]
    assert [entry["kind"] for entry in entries] == ["decision", "call", "call"]
    asked = entries[0]["calls"]
    assert [call["decision"] for call in asked] == ["approve", "reject"]
    assert {call["verdict"] for call in asked} == {"ask"}
    first, second = entries[1:]
    assert (first["tool"], first["approved"], first["approvals"]) == ("write_file", True, "manual")
    assert first["digest"] == asked[0]["digest"] != asked[1]["digest"]
    assert (second["approved"], second["verdict"], second["approvals"]) == (False, "allow", "auto")
    assert "content" not in json.dumps(entries)  # of arguments the digest alone
    await database.close()


async def test_a_result_that_was_changed_in_the_conversation_is_found(place: UserFolders) -> None:
    thread = await talk(place)
    settings = place.settings()
    async with open_agent(settings) as agents:
        again = agents.thread(thread.id)
        entries = await read_entries(settings.open_database(), thread.id)
        messages = await again.history()
        assert [*find_changed(entries, messages)] == []
        (changed,) = [one for one in messages if "a.txt" in one.text and one.type == "tool"][:1]
        message = changed.model_copy(update={"content": "Created a.txt (9 characters)."})
        await (await again.load()).aupdate_state(again.config, {"messages": [message]})
        (problem,) = find_changed(entries, await again.history())
        assert problem == "entry 2: the result of write_file is another by now"


def test_make_audit_prints_and_checks(place: UserFolders, run: Run) -> None:
    assert "say which: make audit THREAD=id" in run("audit").stderr
    assert "nothing was decided" in run("audit", "--thread", str(uuid4())).stderr
    assert not place.settings().checkpoints.exists()  # a look makes no file
    thread = asyncio.run(talk(place)).id
    shown = run("audit", "--thread", thread).text
    last = shown.split()[-1]
    assert "write_file: approve (ask: changes a file)" in shown
    assert "write_file: reject (ask: changes a file)" in shown
    assert "write_file: success (allow: " in shown
    lines = run("audit", "--thread", thread, "--json").stdout.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
    assert json.loads(lines[-1])["entry_digest"] == last
    for wrong, problem in (
        ("nope", "no thread's id"),
        (thread[:-4] + "0000", "nothing was decided"),
    ):
        assert problem in run("audit", "--thread", wrong).stderr
    database = place.settings().open_database()
    asyncio.run(database.execute("UPDATE audit SET entry = replace(entry, 'reject', 'approve')"))
    asyncio.run(database.close())
    broken = run("audit", "--thread", thread)
    assert broken.stdout == ""
    assert "entry 1 is not what was written, or not in its place" in broken.stderr


async def delete(place: UserFolders, id: str) -> None:
    async with open_saver(place.settings().open_database()) as saver:
        await saver.adelete_thread(id)


def test_make_audit_prints_what_a_deleted_thread_leaves(place: UserFolders, run: Run) -> None:
    thread = asyncio.run(talk(place)).id
    last = run("audit", "--thread", thread).text.split()[-1]
    asyncio.run(delete(place, thread))
    shown = run("audit", "--thread", thread).text
    assert shown.startswith("deleted 2")
    assert f"entry 3 was the last: {last}" in shown
    end = json.loads(run("audit", "--thread", thread, "--json").stdout)
    assert (end["number"], end["entry_digest"]) == (3, last)


async def test_a_run_that_is_cut_off_or_forked_is_no_change(place: UserFolders) -> None:
    """Nor is one with a call that changes nothing; what is changed in it is found."""
    settings = place.settings()
    async with open_agent(settings) as agents:
        thread = agents.thread()
        question = await thread.say("write a.txt: a", mode="code")
        assert question is not None
        agent = await thread.load()
        answer = {"decisions": [APPROVE], "question": question.value["question"]}
        command: Command[str] = Command(resume={question.id: answer})
        await agent.ainvoke(command, thread.config, interrupt_before=["act"])
        await thread.go_on()
        entries = await read_entries(settings.open_database(), thread.id)
        assert [entry.values["kind"] for entry in entries] == ["decision", "call"]
    settings = place.settings()
    async with open_agent(settings) as agents:
        thread = agents.thread()
        await thread.say("hello", mode="code", approvals="auto")
        fork = replace(thread, config={**(await thread.state()).config})
        await thread.say("write a.txt: a")
        for text in ("write b.txt: b", "read a.txt"):
            await fork.say(text)
            entries = await read_entries(settings.open_database(), thread.id)
            assert [*find_changed(entries, await thread.history())] == []


async def test_a_run_that_is_cut_off_behind_a_call_writes_it_once(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise StorageError("the disk is full")

    settings = place.settings()
    async with open_agent(settings) as agents:
        thread = agents.thread()
        with monkeypatch.context() as patched:
            patched.setattr("modeshift.calls.act.append_entry", die)
            with pytest.raises(StorageError):
                await thread.say("write a.txt: a", mode="code", approvals="auto")
        assert await read_entries(settings.open_database(), thread.id) == []
        await thread.go_on()
        (entry,) = await read_entries(settings.open_database(), thread.id)
        assert entry.values["status"] == "success"
        assert [*find_changed([entry], await thread.history())] == []


async def test_a_call_that_was_stopped_is_told_and_holds_up_no_other_process(
    place: UserFolders,
) -> None:
    settings = place.settings()
    async with open_agent(settings) as agents, open_agent(settings) as others:
        thread = agents.thread()
        question = await thread.say("run touch began; sleep 600", mode="code")
        assert question is not None
        run = asyncio.ensure_future(answer(thread, question))
        await until((place.workspace / "began").exists)
        await thread.stop()
        await asyncio.wait({run})
        await asyncio.wait_for(others.thread(thread.id).say("hello"), SECONDS)
        entries = await read_entries(settings.open_database(), thread.id)
        assert [entry.values.get("status") for entry in entries] == [None, "stopped"]
        assert entries[-1].values["approved"]
        assert [*find_changed(entries, await thread.history())] == []


@pytest.mark.parametrize("key", ["subtasks", "parents"])
def test_a_result_changed_in_a_sub_task_is_found(place: UserFolders, run: Run, key: str) -> None:
    """In that of a sub-task which has ended, or in the outer one while a sub-task goes on."""

    async def begin() -> str:
        async with open_agent(place.settings()) as agents:
            thread = agents.thread()
            await thread.say("write a.txt: a", mode="code", approvals="auto")
            task = "write b.txt: b" if key == "subtasks" else "run touch c"
            question = await thread.say(f"task in code: {task}")
            assert question is not None
            await thread.answer(question, [APPROVE])
            return thread.id

    async def change(id: str) -> None:
        async with open_agent(place.settings()) as agents:
            thread = agents.thread(id)
            parts = (await thread.state()).values[key]
            for one in parts[-1]["messages"]:
                if one.type == "tool":
                    one.content = "Created nothing."
            update = StateUpdate({key: Overwrite(parts)}, "intake")
            agent = await thread.load()  # which itself takes no such update
            await CompiledStateGraph.abulk_update_state(agent, thread.config, [[update]])

    thread = asyncio.run(begin())
    assert "as they were written" in run("audit", "--thread", thread).text
    asyncio.run(change(thread))
    assert "is another by now" in run("audit", "--thread", thread).stderr
