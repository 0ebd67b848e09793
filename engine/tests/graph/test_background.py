"""Commands in the background of a turn: however the turn ends, they end with it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from modeshift.tools.processes.sandboxes import Commands
from tests.harness.conversation import APPROVE, SECONDS, Conversation, cut_off, run_script, script
from tests.harness.scripted import Call
from tests.harness.sleepers import find_sleepers, new_mark, wait_for
from tests.tools.sandbox.commands import needs_sandbox, runner, sandbox

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


async def test_another_thread_reads_nothing_of_it(workspace: Path, mark: str) -> None:
    talk = await begin(workspace, mark, [EDIT], [READ])
    await wait_for(True, mark)
    other = Conversation(talk.agent)
    await other.say("go", mode="code")
    assert f"no command {ID!r} to read" in (await other.results())["step2_0"].text
    assert find_sleepers(mark), "the end of another thread's turn is not its end"


async def approve(talk: Conversation) -> None:
    await talk.decide(APPROVE)


async def say_more(talk: Conversation) -> None:
    await talk.say("something else")


async def set_mode(talk: Conversation) -> None:
    await talk.agent.aupdate_state(talk.config, {"mode": "debug"})
    await talk.send(None)


async def fail(talk: Conversation) -> None:
    talk.config["recursion_limit"] = 8
    with pytest.raises(GraphRecursionError):
        await talk.decide(APPROVE)


COMPLETE: Call = ("attempt_completion", {"result": "done"})


@pytest.mark.parametrize(
    ("act", "steps"),
    [
        pytest.param(approve, [[EDIT]], id="the end of the turn"),
        pytest.param(approve, [[EDIT], [COMPLETE]], id="its completion"),
        pytest.param(approve, [[SWITCH], [READ], [EDIT]], id="a switch of the mode"),
        pytest.param(set_mode, [[EDIT]] * 3, id="a mode that the host sets"),
        pytest.param(say_more, [[EDIT]] * 3, id="another message"),
        pytest.param(fail, [[EDIT], *[[READ]] * 9], id="a run that fails"),
    ],
)
async def test_what_ends_it(
    workspace: Path, mark: str, act: Callable[..., Any], steps: list[list[Call]]
) -> None:
    talk = await begin(workspace, mark, *steps)
    await wait_for(True, mark)
    await act(talk)
    await wait_for(False, mark)
    if SWITCH in steps[0]:
        assert await talk.waiting(), "the turn goes on"
        assert f"no command {ID!r} to read" in (await talk.results())["step2_0"].text


async def cancel(talk: Conversation, mark: str) -> None:
    await cut_off(talk.decide(APPROVE), lambda: bool(find_sleepers(mark)))


async def stop_reading(talk: Conversation, mark: str) -> None:
    resume: Command[Any] = Command(resume={"decisions": [APPROVE]})
    stream: Any = talk.agent.astream(resume, talk.config, stream_mode="updates")
    while "act" not in await anext(stream):
        pass
    await wait_for(True, mark)
    await stream.aclose()


@pytest.mark.parametrize("stop", [cancel, stop_reading])
async def test_a_run_that_is_cut_off_ends_it(
    workspace: Path, mark: str, stop: Callable[..., Any]
) -> None:
    wait: Call = ("read_output", {"id": ID, "wait": 600})
    talk = await run_script(workspace, [background(mark)], [wait], mode="code")
    await stop(talk, mark)
    await wait_for(False, mark)


@needs_sandbox
async def test_in_the_sandbox_it_begins_at_once_and_the_next_command_does_not_wait(
    workspace: Path, mark: str
) -> None:
    """While a command of another thread runs, and in the same turn while it runs itself."""
    other = asyncio.create_task(runner(workspace)("until test -e go; do sleep 0.02; done"))
    next_one = ("execute_command", {"command": "true"})
    talk = script(workspace, [background(mark)], [next_one], "done", commands=Commands(sandbox()))
    async with asyncio.timeout(SECONDS):
        await talk.say("go", mode="code", approvals="auto")
    results = [message.text for message in (await talk.results()).values()]
    assert "Started in the background" in results[0]
    assert "one command runs at a time in the sandbox" in results[1]
    assert not other.done()
    (workspace / "go").touch()
    await other
