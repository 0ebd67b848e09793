"""A run that is cut off, and goes on in another process or in the same one."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
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
from tests.harness.conversation import (
    APPROVE,
    Conversation,
    cut_off,
    reload,
    restart,
    run_script,
    script,
)
from tests.tools.sandbox.commands import needs_sandbox, runner, sandbox


async def cut_off_last(talk: Conversation, workspace: Path, text: str) -> None:
    """Approve everything, and cancel while the last command sleeps."""
    await talk.say(text, mode="code")
    decisions = [APPROVE] * len(await talk.waiting())
    await cut_off(talk.decide(*decisions), (workspace / "begun").exists)


TEXT = "run echo one >> log & run echo two >> log; touch begun; sleep 300"


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_change_that_was_begun_is_not_begun_again(
    talk: Conversation, workspace: Path, *, same_process: bool
) -> None:
    await cut_off_last(talk, workspace, TEXT)
    if not same_process:
        restart(talk, workspace)
    await talk.send(None)
    assert (workspace / "log").read_text() == "one\ntwo\n"
    results = list((await talk.results()).values())
    assert results[0].status == "success"
    assert "may have taken effect" in results[1].text
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


@pytest.mark.parametrize("ticks", range(0, 10, 3))
async def test_a_change_cut_off_before_its_result_is_stored(
    talk: Conversation, workspace: Path, ticks: int
) -> None:
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


async def test_an_answer_without_its_checkpoint_is_not_lost(
    talk: Conversation, workspace: Path
) -> None:
    await talk.say("write a: x", mode="code")
    lose_checkpoint(talk)
    state = await talk.agent.aget_state(talk.config)
    assert not state.next
    assert not state.interrupts
    restart(talk, workspace)
    await talk.say("list")
    assert [message.type for message in await talk.messages()][:3] == ["human", "ai", "tool"]
    assert (await talk.values())["phase"] == "idle"


async def test_a_run_without_input_goes_on_where_no_task_is_left(
    talk: Conversation, workspace: Path
) -> None:
    await cut_off_last(talk, workspace, TEXT)
    await talk.agent.aupdate_state(talk.config, None, as_node=END)
    assert (await talk.values())["phase"] == "acting"
    await talk.send(None)
    assert "may have taken effect" in str(await talk.results())
    assert (await talk.values())["phase"] == "idle"


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("then", ["as it was", "no edits", "a mode's other words", "leads outside"])
@pytest.mark.parametrize("approvals", ["manual", "auto"])
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
async def test_a_result_that_is_given_again_counts_for_the_facts(
    workspace: Path, *, goes_on: bool
) -> None:
    (workspace / "Makefile").write_text("test:\n\techo one >> log\n")
    tests, call = ProjectTests(command="make test"), ("execute_command", {"command": "make test"})
    talk = await run_script(workspace, [call], mode="code", tests=tests)
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
async def test_facts_after_an_edit_that_was_cut_off(
    workspace: Path, *, same_process: bool, goes_on: bool
) -> None:
    write = "write_file", {"path": "plan.md", "content": "x"}
    talk = await run_script(workspace, [write], mode="architect")
    await cut_off_when_a_tool_ends(talk, talk.decide(APPROVE))
    if not same_process:
        restart(talk, workspace)
    await (talk.send(None) if goes_on else talk.say("And?"))
    facts = ["files_changed", "plan_written"] if same_process else ["files_changed"]
    assert (await talk.values())["facts"]["mode"] == facts


async def test_a_new_message_after_the_crash(talk: Conversation, workspace: Path) -> None:
    await cut_off_last(talk, workspace, f"{TEXT} & write later: x")
    restart(talk, workspace)
    await talk.say("list")
    texts = [result.text for result in (await talk.results()).values()]
    assert "exit code 0" in texts[0]
    assert "may have taken effect" in texts[1]
    assert "Not run" in texts[2]
    assert not (workspace / "later").exists()


async def test_what_only_reads_runs_again(talk: Conversation, workspace: Path) -> None:
    (workspace / "a").write_text("text")
    await talk.send_until("ask", {"messages": [{"role": "user", "content": "read a"}]})
    restart(talk, workspace)
    await talk.send(None)
    (result,) = (await talk.results()).values()
    assert remove_marks(result.text).endswith("text")


async def test_a_call_that_an_older_version_was_about_to_run(
    talk: Conversation, workspace: Path
) -> None:
    """Its task is in the checkpoint, without what this version expects of one."""
    await talk.say("write a: x", mode="code")
    call = {"name": "write_file", "args": {"path": "a", "content": "x"}, "id": "old"}
    approved = {"args": call["args"], "edited": False, "digest": "0"}
    task = {
        "planned": {"call": call, "approved": approved, "denied": None},
        "mode": "code",
        "approvals": "manual",
        "is_last": True,
        "rest": [],
    }
    # The agent itself takes no goto from outside.
    async for _ in CompiledStateGraph.astream(
        talk.agent, Command(goto=Send("act", task)), talk.config
    ):
        pass
    assert list(workspace.iterdir()) == []
    await talk.say("list")
    assert (await talk.values())["phase"] == "idle"


@needs_sandbox
async def test_a_command_that_waits_for_another_has_not_begun(workspace: Path) -> None:
    line = "until test -e go; do sleep 0.02; done"
    other = asyncio.create_task(runner(workspace)(line))
    call = ("execute_command", {"command": "echo one >> log"})
    talk = script(workspace, [call], "done", commands=Commands(sandbox()))
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
    (result,) = (await talk.results()).values()
    assert "exit code 0" in result.text
    assert (workspace / "log").read_text() == "one\n"
