"""A run that is cut off, and goes on somewhere; commands in its background, which end with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send
from typing_extensions import override

from modeshift.messages.repair import DONE, remove_marks
from modeshift.modes.catalog import Catalog
from modeshift.modes.facts import ProjectTests
from modeshift.modes.mode import Mode
from modeshift.threads.state import Input
from modeshift.tools.processes.sandboxes import Commands
from tests.graph.calls import result_of, run, write
from tests.harness.conversation import (
    APPROVE,
    SECONDS,
    Conversation,
    cut_off,
    reload,
    restart,
    run_script,
    script,
)
from tests.harness.scripted import Call
from tests.harness.sleepers import find_sleepers, new_mark, wait_for
from tests.tables import rows
from tests.tools.sandbox.commands import needs_sandbox, runner, sandbox


async def cut_off_last(talk: Conversation, workspace: Path, text: str) -> None:
    """Approve everything, and cancel while the last command sleeps."""
    await talk.say(text, mode="code")
    decisions = [APPROVE] * len(await talk.waiting())
    await cut_off(talk.decide(*decisions), (workspace / "begun").exists)


TEXT = "run echo one >> log & run echo two >> log; touch begun; sleep 300"


@pytest.mark.parametrize("how", ["same process", "another process", "no task is left", "message"])
async def test_a_change_is_not_begun_again(talk: Conversation, workspace: Path, how: str) -> None:
    """What is behind it runs as approved, unless somebody says something else then."""
    await cut_off_last(talk, workspace, f"{TEXT} & write later: x")
    if how in ("another process", "message"):
        restart(talk, workspace)
    elif how == "no task is left":
        await talk.agent.aupdate_state(talk.config, None, as_node=END)
        assert (await talk.values())["phase"] == "acting"
    await (talk.say("list") if how == "message" else talk.send(None))
    assert (workspace / "log").read_text() == "one\ntwo\n"
    first, second, third, *_ = (await talk.results()).values()
    assert (first.status, "exit code 0" in first.text) == ("success", True)
    assert "may have taken effect" in second.text
    if how == "message":
        assert ("Not run" in third.text, (workspace / "later").exists()) == (True, False)
    if how == "same process":  # or one with its journal: somebody has gone on with it
        assert (third.status, (workspace / "later").exists()) == ("success", True)
    assert (await talk.values())["phase"] == "idle"


@pytest.mark.parametrize("same_process", [True, False])
async def test_an_older_checkpoint_runs_no_approved_call_again(
    talk: Conversation, workspace: Path, *, same_process: bool
) -> None:
    await talk.say("run echo one >> log & run echo two >> log", mode="code")
    await talk.decide(APPROVE, APPROVE)
    inputs: dict[tuple[str, ...], Any] = {("act",): None}
    if same_process:  # approved anew in another one, they run anew
        inputs["review",] = Command(resume={"decisions": [APPROVE, APPROVE]})
    else:
        restart(talk, workspace)
    history = [state async for state in talk.agent.aget_state_history(talk.config)]
    for state in history:
        if state.next in inputs:
            await talk.agent.ainvoke(inputs[state.next], state.config)
            told = "exit code 0" if same_process else "may have taken effect"
            assert told in str((await talk.messages())[-3:])
    assert (workspace / "log").read_text() == "one\ntwo\n"


async def cut_off_when_a_tool_ends(
    talk: Conversation, going: Coroutine[Any, Any, None], ticks: int = 0
) -> None:
    """Cancel the run so many turns of the event loop after the tool has ended."""
    loop = asyncio.get_running_loop()

    class Cutter(AsyncCallbackHandler):
        @override
        async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
            cut(ticks)

    def cut(after: int) -> None:
        loop.call_soon(cut, after - 1) if after else run.cancel()

    talk.config["callbacks"] = [Cutter()]
    run = asyncio.create_task(going)
    await asyncio.wait({run})
    talk.config["callbacks"] = []


@pytest.mark.parametrize("ticks", [0, 3, 9])
async def test_a_change_cut_before_its_end(talk: Conversation, workspace: Path, ticks: int) -> None:
    """The tool has ended, and LangGraph has not yet heard of it."""
    await talk.say("run echo one >> log", mode="code")
    await cut_off_when_a_tool_ends(talk, talk.decide(APPROVE), ticks)
    if (await talk.agent.aget_state(talk.config)).next:
        await talk.send(None)
    assert (workspace / "log").read_text() == "one\n"


def lose_checkpoint(talk: Conversation) -> None:
    """Leave a step's results without the checkpoint behind it, as a crash between them does."""
    saver: Any = talk.agent.checkpointer
    kept = saver.storage[talk.config["configurable"]["thread_id"]][""]
    del kept[max(kept)]


async def test_an_answer_without_checkpoint_is_kept(talk: Conversation, workspace: Path) -> None:
    await talk.say("write a: x", mode="code")
    lose_checkpoint(talk)
    state = await talk.agent.aget_state(talk.config)
    assert not state.next
    assert not state.interrupts
    restart(talk, workspace)
    await talk.say("list")
    assert [message.type for message in await talk.messages()][:3] == ["human", "ai", "tool"]
    assert (await talk.values())["phase"] == "idle"


@rows(
    "approvals then same_process",
    *(("manual", "as it was", same) for same in (True, False)),
    *(("auto", then, same) for then in ("as it was", "no edits") for same in (True, False)),
    *((kind, "a mode's other words", True) for kind in ("manual", "auto")),
    *(("manual", "leads outside", same) for same in (True, False)),
)
async def test_an_edit_that_was_cut_off_is_not_told_as_not_run(
    talk: Conversation, workspace: Path, approvals: str, then: str, *, same_process: bool
) -> None:
    """Its file is no longer the one that was approved, and is as the edit was to leave it."""
    run = talk.say("write a: x", mode="code", approvals=approvals)
    if approvals == "manual":
        await run
        run = talk.decide(APPROVE)
    await cut_off_when_a_tool_ends(talk, run)
    assert (workspace / "a").read_text() == "x"
    if not same_process:
        restart(talk, workspace)
    changed: dict[str, Any] = {"no edits": {"groups": ()}, "a mode's other words": {"name": "New"}}
    if then in changed:
        deps = talk.agent.live.deps
        modes = {slug: deps.catalog[slug] for slug in deps.catalog}
        code = {name: getattr(modes["code"], name) for name in Mode.model_fields}
        modes["code"] = Mode.model_validate({**code, **changed[then]})
        reload(talk, replace(deps, catalog=Catalog(modes.values(), "ask")))
    if then == "leads outside":
        (workspace / "a").unlink()
        (workspace / "a").symlink_to("/dev/null")
    await talk.send(None)
    (result,) = (await talk.results()).values()
    assert (result.text == DONE) if same_process else ("may have taken effect" in result.text)
    assert not await talk.waiting()


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_result_given_again_counts_for_facts(workspace: Path, *, goes_on: bool) -> None:
    (workspace / "Makefile").write_text("test:\n\techo one >> log\n")
    tests = ProjectTests(command="make test")
    talk = await run_script(workspace, [run("make test")], mode="code", tests=tests)
    await talk.decide(APPROVE)
    facts = (await talk.values())["facts"]
    assert facts["workspace"] == ["tests_passed"]
    history = [state async for state in talk.agent.aget_state_history(talk.config)]
    (due,) = [state for state in history if state.next == ("act",)]
    assert not due.values["facts"].get("workspace")
    run_input: Input | None = None if goes_on else {"messages": [HumanMessage("And?")]}
    await talk.agent.ainvoke(run_input, due.config)
    assert (workspace / "log").read_text() == "one\n"
    assert (await talk.values())["facts"] == facts


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("same_process", [True, False])
async def test_facts_after_cut_edits(workspace: Path, *, same_process: bool, goes_on: bool) -> None:
    talk = await run_script(workspace, [write("plan.md")], mode="architect")
    await cut_off_when_a_tool_ends(talk, talk.decide(APPROVE))
    if not same_process:
        restart(talk, workspace)
    await (talk.send(None) if goes_on else talk.say("And?"))
    facts = ["files_changed", "plan_written"] if same_process else ["files_changed"]
    assert (await talk.values())["facts"]["mode"] == facts


async def test_what_only_reads_runs_again(talk: Conversation, workspace: Path) -> None:
    (workspace / "a").write_text("text")
    await talk.send_until("ask", {"messages": [HumanMessage("read a")]})
    restart(talk, workspace)
    await talk.send(None)
    assert remove_marks(await result_of(talk)).endswith("text")


async def test_a_call_that_an_older_version_was_to_run(talk: Conversation, workspace: Path) -> None:
    """Its task is in the checkpoint, without what this version expects of one."""
    await talk.say("write a: x", mode="code")
    call = {"name": "write_file", "args": {"path": "a", "content": "x"}, "id": "old"}
    approved = {"args": call["args"], "edited": False, "digest": "0"}
    planned = {"call": call, "approved": approved, "denied": None}
    task = {"planned": planned, "mode": "code", "approvals": "manual", "is_last": True, "rest": []}
    sent: Any = Command(goto=Send("act", task))
    # The agent itself takes no goto from outside.
    async for _ in CompiledStateGraph.astream(talk.agent, sent, talk.config):
        pass
    assert list(workspace.iterdir()) == []
    await talk.say("list")
    assert (await talk.values())["phase"] == "idle"


@needs_sandbox
async def test_a_command_that_waits_for_another_has_not_begun(workspace: Path) -> None:
    other = asyncio.create_task(runner(workspace)("until test -e go; do sleep 0.02; done"))
    talk = script(workspace, [run("echo one >> log")], "done", commands=Commands(sandbox()))
    said: Any = {"messages": [HumanMessage("go")], "mode": "code", "approvals": "auto"}
    chunks = talk.agent.astream(said, talk.config, stream_mode="custom")
    async with aclosing(chunks):  # type: ignore[type-var]  # it is a generator
        async for chunk in chunks:
            assert "[waits for another command" in chunk["text"]
            break
    (workspace / "go").touch()
    assert "exit code 0" in await other
    assert not (workspace / "log").exists()
    await talk.send(None)
    assert "exit code 0" in await result_of(talk)
    assert (workspace / "log").read_text() == "one\n"


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


@rows(
    "act steps",
    pytest.param(approve, [[EDIT]], id="the end of the turn"),
    pytest.param(approve, [[EDIT], [COMPLETE]], id="its completion"),
    pytest.param(approve, [[SWITCH], [READ], [EDIT]], id="a switch of the mode"),
    pytest.param(set_mode, [[EDIT]] * 3, id="a mode that the host sets"),
    pytest.param(say_more, [[EDIT]] * 3, id="another message"),
    pytest.param(fail, [[EDIT], *[[READ]] * 9], id="a run that fails"),
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
async def test_a_run_cut_off_ends_it(workspace: Path, mark: str, stop: Callable[..., Any]) -> None:
    wait: Call = ("read_output", {"id": ID, "wait": 600})
    talk = await run_script(workspace, [background(mark)], [wait], mode="code")
    await stop(talk, mark)
    await wait_for(False, mark)


@needs_sandbox
async def test_in_the_sandbox_it_begins_and_no_command_waits(workspace: Path, mark: str) -> None:
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
