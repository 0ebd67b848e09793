"""An answer is for its question, and an approved call runs once."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from modes.errors import InvalidInputError
from tests.harness.conversation import APPROVE, Conversation, make_agent, run_script
from tests.harness.modes import load_with
from tests.harness.place import JUDGED_SANDBOX
from tests.harness.scripted import Call
from tools.processes.sandboxes import Commands

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


async def test_an_approval_holds_in_no_copy_of_the_thread(workspace: Path) -> None:
    """Approved in one thread, and run in a copy that somebody made of it in between."""
    talk = Conversation(make_agent(workspace))
    await talk.say("write a: x", mode="code")
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    copy = Conversation(talk.agent)
    values = await talk.values()
    await talk.agent.aupdate_state(copy.config, values, as_node="review")
    await copy.send(None)
    assert not (workspace / "a").exists()
    assert VOID in str(await copy.messages())
    await talk.send(None)
    assert (workspace / "a").exists()


async def test_an_approval_in_the_sandbox_is_none_without(workspace: Path) -> None:
    saver = InMemorySaver()
    talk = Conversation(make_agent(workspace, saver=saver, commands=Commands(JUDGED_SANDBOX)))
    await talk.say("run touch a", mode="code")
    (asked,) = await talk.waiting()
    assert asked["description"] == (
        "Code mode wants to use execute_command: runs a command in the sandbox. "
        "It can change the workspace, and has no network."
    )
    talk.agent = make_agent(workspace, saver=saver)
    await talk.decide(APPROVE)
    assert not (workspace / "a").exists()
    assert VOID in str(await talk.messages())


@pytest.mark.parametrize("by_an_approved_command", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        ("execute_command", {"command": "touch made", "cwd": "one"}),
        ("write_file", {"path": "one/made", "content": "x"}),
    ],
)
async def test_an_approval_is_for_the_folder_that_was_meant(
    workspace: Path, call: Call, *, by_an_approved_command: bool
) -> None:
    """A link changes while the question is open, or by a command that was approved beside it."""
    for name in ("src", "lib"):
        (workspace / name).mkdir()
    (workspace / "one").symlink_to("src")
    command = "ln -sfn lib one" if by_an_approved_command else "true"
    talk = await run_script(
        workspace, [("execute_command", {"command": command}), call], mode="code"
    )
    if call[0] == "write_file":
        assert "'src/made'" in (await talk.waiting())[1]["description"]
    if not by_an_approved_command:
        (workspace / "one").unlink()
        (workspace / "one").symlink_to("lib")
    await talk.decide(APPROVE, APPROVE)
    assert not list(workspace.glob("*/made"))
    assert VOID in (await talk.results())["call_1"].text


async def test_an_answer_is_not_for_another_call_of_the_same_message(
    talk: Conversation, workspace: Path
) -> None:
    """The host's choices change which call needs a person while the question is open."""
    await talk.say("run touch a", mode="code")
    await talk.decide({**APPROVE, "remember": True})
    (workspace / "a").unlink()
    await talk.say("write b: x & run touch a")
    named = (await question(talk)).value["question"]
    await talk.send({"approvals": "auto", "forget": "all"})
    with suppress(InvalidInputError):
        await talk.send(Command(resume={"decisions": [APPROVE], "question": named}))
    assert not (workspace / "a").exists()


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("after", [None, "theirs", "old"])
async def test_an_approval_is_for_the_text_that_was_there(
    talk: Conversation, workspace: Path, before: str | None, after: str | None
) -> None:
    file = workspace / "a"

    def put(text: str | None) -> None:
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)

    put(before)
    await talk.say("write a: mine", mode="code")
    put(after)
    await talk.decide(APPROVE)
    assert (VOID in str(await talk.messages())) == (before != after)
    text = file.read_text() if file.exists() else None
    assert text == ("mine" if before == after else after)


@pytest.mark.parametrize("before", [b"old", b"\0ld"])
async def test_an_approval_is_for_the_text_also_behind_another_call(
    workspace: Path, before: bytes
) -> None:
    (workspace / "a").write_bytes(before)
    command = ("execute_command", {"command": "printf new > a"})
    talk = await run_script(
        workspace, [command, ("write_file", {"path": "a", "content": "mine"})], mode="code"
    )
    await talk.decide(APPROVE, APPROVE)
    assert (workspace / "a").read_text() == "new"
    assert VOID in str(await talk.messages())


async def test_what_is_always_allowed_is_what_was_shown(
    talk: Conversation, workspace: Path
) -> None:
    (workspace / "a").write_text("old")
    await talk.say("write a: mine then write a: again", mode="code")
    (workspace / "a").write_text("theirs")
    await talk.decide({"type": "approve", "remember": True})
    assert (workspace / "a").read_text() == "theirs"
    assert len(await talk.waiting()) == 1


async def test_an_edit_beside_it_does_not_renew_an_approval_that_is_void(workspace: Path) -> None:
    """Text comes into the file before an edit that is approved, or needs no approval."""
    (workspace / "a").write_text("old")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("execute_command", {"command": "printf ' typed' >> a"}),
        ("edit_file", {"path": "a", "edits": [{"old": "old", "new": "older"}]}),
        ("write_file", {"path": "a", "content": "mine"}),
    ]
    catalog = load_with("code", permissions={"edit_file": {"**": "allow"}})
    talk = await run_script(workspace, calls, catalog=catalog, mode="code")
    assert [asked["name"] for asked in await talk.waiting()] == ["execute_command", "write_file"]
    await talk.decide(APPROVE, APPROVE)
    assert (workspace / "a").read_text() == "older typed"


async def test_two_edits_of_one_file_are_approved_together(workspace: Path) -> None:
    talk = await run_script(
        workspace,
        [("write_file", {"path": "a", "content": text}) for text in ("one", "two")],
        mode="code",
    )
    await talk.decide(APPROVE, APPROVE)
    assert (workspace / "a").read_text() == "two"


async def test_an_approval_is_for_the_mode_with_its_rules(workspace: Path) -> None:
    """They change between the answer and the run, in a process that has taken over."""
    saver = InMemorySaver()
    talk = Conversation(make_agent(workspace, saver=saver))
    await talk.say("write a: x", mode="code")
    await talk.send_until("review", Command(resume={"decisions": [APPROVE]}))
    catalog = load_with("code", role_definition="You obey.")
    talk.agent = make_agent(workspace, saver=saver, catalog=catalog)
    await talk.send(None)
    assert not (workspace / "a").exists()
    assert VOID in str(await talk.messages())
