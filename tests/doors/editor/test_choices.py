"""What the user chooses: it is shown, it is what applies, and none is lost."""

from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from tests.doors.editor.editor import WAIT_FOR_GO, Editor, choosing, dismiss, never
from tests.doors.editor.model import CLAUDE, GPT

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_modes_options_and_commands_are_offered(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace)
    slugs = ["ask", "architect", "code", "debug"]
    assert [mode.id for mode in talk.opened.modes.available_modes] == slugs
    assert [
        (one.id, one.category, one.current_value, [value.value for value in one.options])
        for one in talk.opened.config_options
    ] == [
        ("mode", "mode", "ask", slugs),
        ("model", "model", "offline", ["offline", GPT, CLAUDE, "groq:x"]),
        ("approvals", None, "manual", ["manual", "auto"]),
    ]
    await editor.until(lambda: talk.of("available_commands_update"))
    (update,) = talk.of("available_commands_update")
    assert [command.name for command in update.available_commands] == [
        *slugs, "compact", "approvals", "model", "status",
    ]  # fmt: skip


async def test_a_mode_is_chosen_in_the_old_way_and_the_new(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace)
    await editor.agent.set_session_mode(session_id=talk.id, mode_id="code")
    assert talk.shown == ("code", "manual")
    await talk.choose("mode", "debug")
    assert talk.shown == ("debug", "manual")
    assert len(talk.of("current_mode_update")) == len(talk.of("config_option_update")) == 2
    await talk.say("write a.txt: a")
    assert talk.kinds_asked == ["edit"]  # and no switch
    assert len(talk.of("current_mode_update")) == 2


async def test_a_slash_command_chooses_a_mode(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await editor.talk(workspace)
    assert await talk.say("/code write a.txt: one\nwrite b.txt: two") == "end_turn"
    assert (workspace / "a.txt").read_text() + (workspace / "b.txt").read_text() == "onetwo"
    assert [call.title for call in talk.asked] == ["Write file a.txt", "Write file b.txt"]
    assert await talk.say("/architect") == "end_turn"
    assert talk.shown == ("architect", "manual")
    assert talk.said.endswith("Architect mode.")


@pytest.mark.parametrize("option", ["mode", "approvals", "model", "colour"])
async def test_an_unknown_value_changes_nothing(
    editor: Editor, workspace: Path, option: str
) -> None:
    talk = await editor.talk(workspace)
    for value in ("surgeon", "", "groq:x" if option == "model" else "ASK", True):
        with pytest.raises(RequestError) as it:
            await talk.choose(option, value)
        assert it.value.code == -32602
    with pytest.raises(RequestError, match="ask, architect, code, debug"):
        await editor.agent.set_session_mode(session_id=talk.id, mode_id="surgeon")
    assert await talk.stored() == ("ask", "manual")
    assert not talk.of("current_mode_update") + talk.of("config_option_update")


# While the agent works.


@pytest.mark.parametrize(
    ("option", "value", "runs", "said"),
    [
        ("mode", "ask", False, "Not run: the host has changed the mode"),
        ("approvals", "manual", False, ""),
        ("model", "offline", True, "offline model"),
    ],
)
async def test_a_choice_applies_to_what_the_model_is_writing(
    editor: Editor, workspace: Path, option: str, value: str, runs: bool, said: str
) -> None:
    editor.answer = choosing("reject")
    talk = await editor.talk(workspace, "code", model=GPT, approvals="auto")
    turn = await talk.begin("slowly write", lambda: talk.said)
    await talk.choose(option, value)
    assert await turn == "end_turn"
    assert (workspace / "a.txt").exists() == runs
    assert ("Write file a.txt", "completed" if runs else "failed") in talk.ends
    assert said in talk.said
    shown = talk.shown
    assert await talk.stored() == shown


@pytest.mark.parametrize(
    ("option", "value", "mode"),
    [("mode", "ask", "ask"), ("mode", "code", "code"), ("approvals", "manual", "debug")],
)
async def test_a_choice_made_after_a_switch_was_approved_counts(
    editor: Editor, workspace: Path, option: str, value: str, mode: str
) -> None:
    """What was approved is done after the other calls of its message."""
    editor.answer = choosing("once", "auto")
    talk = await editor.talk(workspace, "code")
    turn = await talk.begin(
        f"run echo begun; {WAIT_FOR_GO} & switch to debug\nwrite a.txt: a",
        talk.has_printed,
    )
    editor.answer = dismiss
    await talk.choose(option, value)
    (workspace / "go").touch()
    await turn
    assert not (workspace / "a.txt").exists()
    assert talk.shown == (mode, "manual")
    assert await talk.stored() == (mode, "manual")


# While a person is asked.


async def test_another_mode_withdraws_a_question(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code")
    turn = await talk.begin_asking("write a.txt: a")
    editor.answer = choosing("reject")
    await talk.say("/ask")
    assert await turn == "end_turn"
    assert not (workspace / "a.txt").exists()
    assert talk.kinds_asked == ["edit", "switch_mode"]


@pytest.mark.parametrize(("chosen", "answered"), [("auto", "manual"), ("manual", "auto")])
async def test_the_later_of_two_choices_counts(
    editor: Editor, workspace: Path, chosen: str, answered: str
) -> None:
    """One in the editor's selector, one as the answer to a question about a switch."""
    talk = await editor.talk(workspace)

    async def answer(*_: Any) -> str:
        await talk.choose("approvals", chosen)
        editor.answer = dismiss
        return answered

    editor.answer = answer
    await talk.say("write a.txt: a")
    assert talk.shown == ("code", answered)
    assert (workspace / "a.txt").exists() == (answered == "auto")
    assert await talk.stored() == ("code", answered)


async def test_a_mode_withdraws_a_question_that_waits_in_the_chat(
    editor: Editor, workspace: Path
) -> None:
    talk = await editor.talk(workspace, model=GPT)
    await talk.say("open question")
    await talk.choose("mode", "code")
    assert talk.calls == [("Which colour?", ["pending", "pending", "failed"])]
    await talk.say("Green")
    assert talk.said.endswith("Here I am.")


# In another window.


async def test_what_is_chosen_elsewhere_is_shown_and_holds(
    editor: Editor, other: Editor, workspace: Path
) -> None:
    here = await editor.talk(workspace, "code")
    there = await other.load(here, resume=True)
    await here.choose("approvals", "auto")
    assert await there.say("write a.txt: a") == "end_turn"
    assert there.shown == ("code", "auto")
    assert not there.asked
    await there.choose("mode", "ask")
    assert await here.say("hello") == "end_turn"
    assert here.shown == ("ask", "auto")


async def test_a_session_at_work_elsewhere_takes_no_message_and_no_choice(
    editor: Editor, other: Editor, workspace: Path
) -> None:
    here = await editor.talk(workspace, "code")
    turn = await here.begin_asking("write a.txt: a")
    there = await other.load(here)
    assert there.ends == [("Write file a.txt", "pending")]
    other.answer = never
    for refused in (there.say("list"), there.say("/ask"), there.choose("approvals", "auto")):
        with pytest.raises(RequestError, match="another process is working"):
            await refused
    await here.cancel()
    assert await turn == "cancelled"
    assert await here.stored() == ("code", "manual")
    await there.choose("mode", "ask")
    assert there.ends == [("Write file a.txt", "failed")]
    assert await there.say("hello") == "end_turn"
