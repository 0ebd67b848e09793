"""``open_agent``: the same object for an agent in this process and for one on a server."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from langgraph.types import Interrupt

from modeshift import APPROVE, Agents, Chunk, Printed, Thread, UserError, Wrote, edit, open_agent
from tests.harness.conversation import until
from tests.harness.place import UserFolders
from tests.harness.server import free_port
from tests.tools.mcp.servers import TOY


@pytest.fixture(params=["process", "server"])
async def agents(
    request: pytest.FixtureRequest, place: UserFolders, tmp_path: Path
) -> AsyncIterator[Agents]:
    settings = place.settings(checkpoints=tmp_path / "threads.sqlite")
    address = None
    if request.param == "server":
        address = request.getfixturevalue("server").url
    async with open_agent(settings, address=address) as agents:
        yield agents


async def approve(thread: Thread, question: Interrupt) -> None:
    await thread.answer(question, [APPROVE])


async def test_a_question_is_answered_with_its_decisions(agents: Agents) -> None:
    thread = agents.thread()
    assert (await thread.state()).values == {}
    assert await thread.history() == []
    question = await thread.say("write a-note.txt: hello", mode="code")
    assert question is not None
    assert question == await thread.question()
    (action,) = question.value["action_requests"]
    given = edit(action["name"], **{**action["args"], "content": "changed"})
    assert await thread.answer(question, [given]) is None
    again = agents.thread(thread.id)
    assert await again.question() is None
    texts = [message.text for message in await again.history()]
    assert any(text.endswith("Created a-note.txt (7 characters).") for text in texts)
    with pytest.raises(UserError, match="this question is no longer open"):
        await again.answer(question, [APPROVE])
    assert [message.text for message in await again.history()] == texts


async def test_no_question_is_not_answered(agents: Agents) -> None:
    with pytest.raises(UserError, match="no question to answer"):
        await agents.thread().answer(None, [APPROVE])


async def test_a_copy_of_a_thread_answers_the_question_of_a_node(
    place: UserFolders, tmp_path: Path
) -> None:
    settings = place.settings(checkpoints=tmp_path / "threads.sqlite", max_turn_cost="300 tokens")
    async with open_agent(settings) as agents:
        thread, copy = agents.thread(), agents.thread()
        await thread.say("list", mode="ask")
        await agents.cache.copy_thread(thread.id, copy.id)
        for each in (copy, thread):
            question = await each.question()
            assert question is not None
            assert await each.answer(question, [APPROVE]) is None


async def test_events_are_what_happens_as_it_happens(agents: Agents) -> None:
    thread = agents.thread()
    question = await thread.say("run printf one; printf two >&2", mode="code")
    assert question is not None
    events = [event async for event in thread.answer(question, [APPROVE])]
    assert "".join(event.text for event in events if isinstance(event, Printed)) == "onetwo"
    nodes = [event.node for event in events if isinstance(event, Wrote)]
    assert nodes[:2] == ["review", "act"]
    said = "".join(event.message.text for event in events if isinstance(event, Chunk))
    (*_, last) = [event for event in events if isinstance(event, Wrote) and event.messages]
    assert last.messages[-1].text == said != ""


async def test_what_is_set_holds_and_what_is_unknown_is_refused(agents: Agents) -> None:
    thread = agents.thread()
    await thread.set(mode="architect", limit="ask")
    await thread.say("hello")
    values = (await thread.state()).values
    assert (values["mode"], values["limit"]) == ("architect", "ask")
    for wrong in ({"mode": "nonsense"}, {"approvals": "always"}, {"phase": "acting"}):
        with pytest.raises(UserError, match=str(next(iter(wrong)))):
            await thread.set(**wrong)
    with pytest.raises(UserError, match="nonsense"):
        await thread.say("hello", mode="nonsense")
    after = (await thread.state()).values
    assert (after["mode"], after["approvals"]) == ("architect", values["approvals"])


async def test_what_is_remembered_is_taken_back(agents: Agents) -> None:
    thread = agents.thread()
    assert await thread.remembered() == []
    for name in ("one", "two", "three"):
        question = await thread.say(f"run printf {name}", mode="code")
        assert question is not None
        await thread.answer(question, [{**APPROVE, "remember": True}])
    first, second, third = await thread.remembered()
    assert (second["mode"], second["pattern"]) == ("code", "printf two")
    id, before = first["id"], (await thread.state()).values
    wrongs: list[Any] = [["nothing"], [id, "nothing"], [5], {}, "nothing", 5, None, {"id": id}]
    for wrong in (*wrongs, [first], ["printf one"]):
        for more in ({}, {"approvals": "auto"}):
            with pytest.raises(UserError, match=r"nothing|forget|remembers"):
                await thread.set(forget=wrong, **more)
    assert await thread.remembered() == [first, second, third]
    assert (await thread.state()).values == before
    other = agents.thread(thread.id)
    await asyncio.gather(thread.set(forget=[first["id"]]), other.set(forget=[second["id"]]))
    assert await thread.remembered() == [third]
    assert await thread.say("run printf two") is not None
    assert await thread.say("run printf one") is not None
    assert await thread.say("run printf three") is None
    assert (await thread.state()).values["approvals"] == "manual"
    await thread.set(forget="all")
    assert await thread.remembered() == []
    assert await thread.say("run printf three") is not None


async def test_mcp_servers_end_with_the_agent(place: UserFolders) -> None:
    entry = {"command": sys.executable, "args": [str(TOY)]}
    (place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"here": entry}}))
    async with open_agent(place.settings()) as agents:
        await agents.thread().say('call mcp__here__get_time {"zone": "Rome"}', mode="code")
        assert len(list_toys()) == 1
    assert not list_toys()
    assert "mcp" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}


def list_toys() -> list[psutil.Process]:
    """The servers that this process has started."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if str(TOY) in child.cmdline()]


async def test_stopping_kills_what_runs_and_the_thread_goes_on(
    agents: Agents, tmp_path: Path
) -> None:
    thread, begun = agents.thread(), tmp_path / "begun"
    question = await thread.say(f"run touch {begun}; sleep 600", mode="code")
    assert question is not None
    run = asyncio.ensure_future(approve(thread, question))
    await until(begun.exists)
    await agents.thread(thread.id).stop()
    await run
    state = await thread.state()
    assert not state.interrupts
    await thread.go_on()
    assert (await thread.history())[-1].type == "ai"


async def test_a_message_goes_back(agents: Agents) -> None:
    thread = agents.thread()
    await thread.say("hello")
    preview = await thread.undo()
    assert await thread.undo("last", preview["digest"]) == preview
    assert await thread.history() == []
    with pytest.raises(UserError, match="no message 'last' of yours"):
        await thread.undo()


async def test_a_thread_is_named_by_a_uuid(agents: Agents) -> None:
    with pytest.raises(UserError, match="mine"):
        agents.thread("mine")
    thread = agents.thread("6F9619FF-8B86-D011-B42D-00CF4FC964FF")
    assert thread.id == "6f9619ff-8b86-d011-b42d-00cf4fc964ff"


async def test_a_server_that_does_not_answer(place: UserFolders) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    async with open_agent(place.settings(), address=address) as agents:
        for asked in (agents.thread().state(), agents.thread().set(mode="code")):
            with pytest.raises(UserError, match="the server does not answer"):
                await asked
        with pytest.raises(UserError, match="the server does not answer"):
            await agents.thread().say("hello")
