"""Commands in the background of a turn: however the turn ends, they end with it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from tests.harness.conversation import (
    APPROVE,
    REJECT,
    Conversation,
    make_agent,
    run_script,
)
from tests.harness.scripted import Call, ScriptedModel, calling
from tests.harness.sleepers import find_sleepers, new_mark, wait_for

ID = sha256(b"call_0").hexdigest()[:6]
READ: Call = ("read_output", {"id": ID})
EDIT: Call = ("write_file", {"path": "a", "content": "x"})
SWITCH: Call = ("switch_mode", {"mode_slug": "debug", "reason": "x"})


@pytest.fixture
async def mark() -> AsyncIterator[str]:
    mark = new_mark()
    yield mark
    for process in find_sleepers(mark):
        process.kill()


def background(mark: str) -> Call:
    return "execute_command", {"command": f"echo begun; sleep {mark}", "background": True}


async def begin(workspace: Path, mark: str, *steps: list[Call]) -> Conversation:
    """A turn with a command in the background, which goes on with the steps until it is asked."""
    talk = await run_script(workspace, [background(mark)], *steps, mode="code")
    await talk.decide(APPROVE)
    return talk


async def test_it_goes_on_while_a_person_decides(workspace: Path, mark: str) -> None:
    wait: Call = ("read_output", {"id": ID, "wait": 1})
    talk = await begin(workspace, mark, [EDIT], [wait], [EDIT])
    await wait_for(True, mark)
    await talk.decide(APPROVE)
    assert await talk.waiting()
    assert f"1\tbegun\n[{ID} is still running]" in (await talk.results())["step2_0"].text
    assert "<data-" in (await talk.results())["step2_0"].text
    assert find_sleepers(mark)
    await talk.decide(REJECT)
    assert (await talk.messages())[-1].text == "done"
    await wait_for(False, mark)


@pytest.mark.parametrize("last", [None, ("attempt_completion", {"result": "done"})])
async def test_it_ends_with_the_turn(workspace: Path, mark: str, last: Call | None) -> None:
    steps = [[EDIT], *([[last]] if last else [])]
    talk = await begin(workspace, mark, *steps)
    await wait_for(True, mark)
    await talk.decide(APPROVE)
    assert not await talk.waiting()
    await wait_for(False, mark)


async def test_the_next_turn_reads_nothing_of_it(workspace: Path, mark: str) -> None:
    answers = [calling(background(mark)), AIMessage("done"), calling(READ, prefix="next")]
    talk = Conversation(make_agent(workspace, ScriptedModel(answers=answers)))
    await talk.say("go", mode="code")
    await talk.decide(APPROVE)
    await talk.say("and?")
    assert f"this turn has no command {ID!r} to read" in (await talk.results())["next_0"].text


async def test_another_thread_reads_nothing_of_it(workspace: Path, mark: str) -> None:
    talk = await begin(workspace, mark, [EDIT], [READ])
    await wait_for(True, mark)
    other = Conversation(talk.agent)
    await other.say("go", mode="code")
    assert f"no command {ID!r} to read" in (await other.results())["step2_0"].text
    assert find_sleepers(mark), "the end of another thread's turn is not its end"


async def say_more(talk: Conversation) -> None:
    await talk.say("something else")


async def set_mode(talk: Conversation) -> None:
    await talk.agent.aupdate_state(talk.config, {"mode": "debug"})
    await talk.send(None)


@pytest.mark.parametrize("act", [say_more, set_mode])
async def test_what_else_ends_it(workspace: Path, mark: str, act: Callable[..., Any]) -> None:
    talk = await begin(workspace, mark, [EDIT], [EDIT], [EDIT])
    await wait_for(True, mark)
    await act(talk)
    await wait_for(False, mark)


async def test_a_switch_of_the_mode_ends_it(workspace: Path, mark: str) -> None:
    talk = await begin(workspace, mark, [SWITCH], [READ], [EDIT])
    await wait_for(True, mark)
    await talk.decide(APPROVE)
    assert await talk.waiting(), "the turn goes on"
    await wait_for(False, mark)
    assert f"no command {ID!r} to read" in (await talk.results())["step2_0"].text


async def test_a_run_that_fails_ends_it(workspace: Path, mark: str) -> None:
    talk = await run_script(workspace, [background(mark)], *([READ] for _ in range(9)), mode="code")
    talk.config["recursion_limit"] = 8
    with pytest.raises(GraphRecursionError):
        await talk.decide(APPROVE)
    await wait_for(False, mark)


async def test_a_run_that_is_cancelled_ends_it(workspace: Path, mark: str) -> None:
    talk = await run_script(
        workspace, [background(mark)], [("read_output", {"id": ID, "wait": 600})], mode="code"
    )
    run = asyncio.create_task(talk.decide(APPROVE))
    await wait_for(True, mark)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await wait_for(False, mark)


async def test_a_client_that_stops_reading_ends_it(workspace: Path, mark: str) -> None:
    talk = await run_script(
        workspace, [background(mark)], [("read_output", {"id": ID, "wait": 600})], mode="code"
    )
    resume: Command[Any] = Command(resume={"decisions": [APPROVE]})
    stream: Any = talk.agent.astream(resume, talk.config, stream_mode="updates")
    while "act" not in await anext(stream):
        pass
    await wait_for(True, mark)
    await stream.aclose()
    await wait_for(False, mark)
