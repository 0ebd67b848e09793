"""An answer is for its question, and an approved call runs once."""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import END
from langgraph.types import Command

from modeshift.modes.errors import InvalidInputError
from modeshift.modes.policy import Approvals
from modeshift.tools.processes.sandboxes import Commands
from tests.graph.calls import ALWAYS, replace_in, run, write
from tests.harness.conversation import (
    APPROVE,
    Conversation,
    edit,
    make_agent,
    reload,
    restart,
    run_script,
)
from tests.harness.modes import load_with
from tests.harness.place import JUDGED_SANDBOX
from tests.harness.scripted import Call
from tests.tables import rows

VOID = "have changed since the user was asked"


async def question(talk: Conversation) -> Any:
    (interrupt,) = (await talk.agent.aget_state(talk.config)).interrupts
    return interrupt


@pytest.mark.parametrize("must_name_it", [True, False])
async def test_an_answer_is_for_its_question(workspace: Path, *, must_name_it: bool) -> None:
    """A wrong name is refused; whether a missing one is, the server decides."""
    talk = Conversation(make_agent(workspace, bound_answers=must_name_it))
    await talk.say("write a: x", mode="code")
    first = await question(talk)
    for named in ({}, {"question": None}) if must_name_it else ():
        with pytest.raises(Exception, match="question"):
            await talk.send(Command(resume={"decisions": [APPROVE], **named}))
    answer = {"decisions": [APPROVE], "question": first.value["question"]}
    await talk.send(Command(resume=answer))
    assert (workspace / "a").read_text() == "x"
    await talk.say("write b: x")
    second = await question(talk)
    assert second.value["question"] != first.value["question"]
    await talk.send(Command(resume={first.id: answer}))
    with pytest.raises(Exception, match="the question is now"):
        await talk.send(Command(resume=answer))
    assert (await question(talk)).id == second.id
    assert not (workspace / "b").exists()
    await talk.send(Command(resume={"decisions": [APPROVE], "question": second.value["question"]}))
    assert (workspace / "b").read_text() == "x"


@pytest.mark.parametrize(
    ("approvals", "goes_on", "is_forged"),
    [*product(Approvals, (True, False), (False,)), (Approvals.MANUAL, True, True)],
)
async def test_what_is_planned_runs_in_no_copy_of_the_thread(
    talk: Conversation, workspace: Path, approvals: str, *, goes_on: bool, is_forged: bool
) -> None:
    """Approved or allowed in one thread; not even where somebody says that it is the copy's own."""
    said = {"messages": [HumanMessage("write a: x")], "mode": "code", "approvals": approvals}
    node = "code"
    await talk.send_until(node, said)
    if approvals == Approvals.MANUAL:
        await talk.send(None)
        node = "review"
        await talk.send_until(node, Command(resume={"decisions": [APPROVE]}))
    copy = Conversation(talk.agent)
    values = await talk.values()
    values.pop("facts", None)  # which nobody may write
    values.pop("approved_plan", None)
    if is_forged:
        ((planned,),) = values["due_calls"]
        journal = talk.agent.started_calls.journal
        planned["journal"] = journal.mark(copy.config["configurable"]["thread_id"])
    await talk.agent.aupdate_state(copy.config, values, as_node=node)
    await (copy.send(None) if goes_on else copy.say("And?"))
    assert not (workspace / "a").exists()
    (result,) = (await copy.results()).values()
    assert (VOID if is_forged else "may have taken effect") in result.text
    await talk.send(None)
    assert (workspace / "a").exists()


@pytest.mark.parametrize("goto", [END, [END]])
async def test_a_question_that_is_marked_as_resolved_is_rejected_and_its_turn_ends(
    talk: Conversation, workspace: Path, goto: Any
) -> None:
    """As Agent Chat UI does it; where none waits, nothing happens."""
    await talk.say("write a: x & write b: x", mode="code")
    await talk.send(Command(goto=goto))
    assert not await talk.waiting()
    results = (await talk.results()).values()
    assert [result.artifact["shown"] for result in results] == ["You said no."] * 2
    before = await talk.values()
    with pytest.raises(InvalidInputError, match="no question is open"):
        await talk.send(Command(goto=goto))
    assert await talk.values() == before
    await talk.say("write c: x")
    await talk.decide(APPROVE)
    assert [file.name for file in workspace.iterdir()] == ["c"]


@pytest.mark.parametrize("change", ["no sandbox", "a mode's words"])
async def test_an_approval_is_for_the_sandbox_and_mode_it_saw(workspace: Path, change: str) -> None:
    """They change before the answer, or between it and the run."""
    talk = Conversation(make_agent(workspace, commands=Commands(JUDGED_SANDBOX)))
    await talk.say("run touch a", mode="code")
    (asked,) = await talk.waiting()
    assert asked["description"] == (
        "Code mode wants to use execute_command: runs a command in the sandbox. "
        "It can change the workspace, and has no network."
    )
    if change == "no sandbox":
        restart(talk, workspace)
        await talk.decide(APPROVE)
    else:
        await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
        catalog = load_with("code", role_definition="You obey.")
        reload(talk, replace(talk.agent.live.deps, catalog=catalog))
        await talk.send(None)
    assert not (workspace / "a").exists()
    assert VOID in str(await talk.messages())


@pytest.mark.parametrize("by_an_approved_command", [True, False])
@pytest.mark.parametrize("call", [run("touch made", cwd="one"), write("one/made")])
async def test_an_approval_is_for_the_folder_that_was_meant(
    workspace: Path, call: Call, *, by_an_approved_command: bool
) -> None:
    """A link changes while the question is open, or by a command that was approved beside it."""
    for name in ("src", "lib"):
        (workspace / name).mkdir()
    (workspace / "one").symlink_to("src")
    command = run("ln -sfn lib one" if by_an_approved_command else "true")
    talk = await run_script(workspace, [command, call], mode="code")
    if call[0] == "write_file":
        assert "'src/made'" in (await talk.waiting())[1]["description"]
    if not by_an_approved_command:
        (workspace / "one").unlink()
        (workspace / "one").symlink_to("lib")
    await talk.decide(APPROVE, APPROVE)
    assert not list(workspace.glob("*/made"))
    assert VOID in (await talk.results())["call_1"].text


async def test_an_answer_is_for_no_call_beside_its_own(talk: Conversation, workspace: Path) -> None:
    """The host's choices change which call needs a person while the question is open."""
    for name in ("a", "b"):
        await talk.say(f"run touch {name}", mode="code")
        await talk.decide(ALWAYS)
        (workspace / name).unlink()
    first, second = (await talk.values())["remembered"]
    await talk.agent.aupdate_state(talk.config, {"remembered": [first]})
    await talk.say("run touch b & run touch a")
    answer = {"decisions": [APPROVE], "question": (await question(talk)).value["question"]}
    with suppress(InvalidInputError):
        await talk.send(Command(resume=answer, update={"remembered": [second]}))
    assert not (workspace / "a").exists()


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("after", [None, "theirs", "old"])
@pytest.mark.parametrize("decision", [APPROVE, edit("write_file", path="./a", content="mine")])
async def test_an_approval_is_for_the_text_that_was_there(
    talk: Conversation, workspace: Path, before: str | None, after: str | None, decision: Any
) -> None:
    """So is a person's own text for the file that they were shown."""
    file = workspace / "a"

    def put(text: str | None) -> None:
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)

    put(before)
    await talk.say("write a: mine", mode="code")
    put(after)
    await talk.decide(decision)
    assert (VOID in str(await talk.messages())) == (before != after)
    text = file.read_text() if file.exists() else None
    assert text == ("mine" if before == after else after)


NEW, TYPED = run("printf new > a"), run("printf ' typed' >> a")
ALLOWED = replace_in("a", "old", "older")


@rows(
    "before calls after",
    pytest.param("old", [NEW, write("a", "mine")], "new", id="a command"),
    pytest.param("\0ld", [NEW, write("a", "mine")], "new", id="a command, and no text"),
    pytest.param("old", [TYPED, ALLOWED, write("a")], "older typed", id="an edit unasked"),
    pytest.param("old", [write("a", "one"), write("a", "two")], "two", id="the same message"),
)
async def test_an_approval_is_for_the_text_also_behind_another_call(
    workspace: Path, before: str, calls: list[Call], after: str
) -> None:
    """Text that comes into the file voids it; an edit beside it does not renew it."""
    (workspace / "a").write_text(before)
    catalog = load_with("code", permissions={"edit_file": {"**": "allow"}})
    talk = await run_script(workspace, calls, mode="code", catalog=catalog)
    await talk.decide(APPROVE, APPROVE)
    assert (workspace / "a").read_text() == after
    assert (VOID in str(await talk.messages())) is (after != "two")


async def test_always_allowed_is_what_was_shown(talk: Conversation, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    await talk.say("write a: mine then write a: again", mode="code")
    (workspace / "a").write_text("theirs")
    await talk.decide(ALWAYS)
    assert (workspace / "a").read_text() == "theirs"
    assert len(await talk.waiting()) == 1
