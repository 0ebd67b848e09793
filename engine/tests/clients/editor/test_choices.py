"""What the user chooses: it is shown, it is what applies, and none is lost."""

from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from tests.clients.editor.editor import Editor, Talk, choosing, dismiss, never
from tests.clients.editor.model import CLAUDE, GO_ON, GPT

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_modes_options_and_commands_are_offered(talk: Talk) -> None:
    slugs = ["ask", "architect", "code", "debug"]
    assert [mode.id for mode in talk.opened.modes.available_modes] == slugs
    assert [
        (
            option.id,
            option.category,
            option.current_value,
            [value.value for value in option.options],
        )
        for option in talk.opened.config_options
    ] == [
        ("mode", "mode", "ask", slugs),
        ("model", "model", "offline", ["offline", GPT, CLAUDE, "groq:x"]),
        ("approvals", None, "manual", ["manual", "auto"]),
    ]
    await talk.editor.until(lambda: talk.of("available_commands_update"))
    (update,) = talk.of("available_commands_update")
    assert [command.name for command in update.available_commands] == [
        *slugs, "compact", "approvals", "allowed", "undo", "model", "status",
    ]  # fmt: skip


async def test_a_mode_is_chosen_in_the_old_way_and_the_new(talk: Talk) -> None:
    await talk.editor.agent.set_session_mode(session_id=talk.id, mode_id="code")
    assert talk.shown == ("code", "manual")
    await talk.choose("mode", "debug")
    assert talk.shown == ("debug", "manual")
    assert len(talk.of("current_mode_update")) == len(talk.of("config_option_update")) == 2
    await talk.say("write a.txt: a")
    assert talk.kinds_asked == ["edit"]  # and no switch
    assert len(talk.of("current_mode_update")) == 2


async def test_what_is_chosen_by_typing(code: Talk) -> None:
    assert await code.say("/approvals auto") == "end_turn"
    assert code.shown == ("code", "auto")
    await code.say("/approvals")
    assert "Approvals: auto (Auto-accept). Edits of files" in code.said
    await code.say("/approvals manual")
    await code.say(f"/model {GPT}")
    await code.say("/status")
    for said in ("Code mode.\n\nApprovals: manual (Ask first).", f"\n\nModel: {GPT}. There are:"):
        assert said in code.said
    with pytest.raises(RequestError, match="approvals 'some' is unknown"):
        await code.say("/approvals some")
    names = [
        command.name for command in code.of("available_commands_update")[-1].available_commands
    ]
    assert names[-6:] == ["compact", "approvals", "allowed", "undo", "model", "status"]


@pytest.mark.parametrize("option", ["mode", "approvals", "model", "colour"])
async def test_an_unknown_value_changes_nothing(talk: Talk, option: str) -> None:
    for value in ("surgeon", "", "groq:x" if option == "model" else "ASK", True):
        with pytest.raises(RequestError) as it:
            await talk.choose(option, value)
        assert it.value.code == -32602
    with pytest.raises(RequestError, match="ask, architect, code, debug"):
        await talk.editor.agent.set_session_mode(session_id=talk.id, mode_id="surgeon")
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
    GO_ON.release()
    assert await turn == "end_turn"
    assert (workspace / "a.txt").exists() == runs
    assert ("Write file a.txt", "completed" if runs else "failed") in talk.ends
    assert said in talk.said
    shown = talk.shown
    assert await talk.stored() == shown


# While a person is asked.


async def test_another_mode_withdraws_a_question(code: Talk) -> None:
    turn = await code.begin_asking("write a.txt: a")
    asked = code.editor.list_raw("session/request_permission")[-1]
    code.answer = choosing("reject")
    await code.say("/ask")
    assert await turn == "end_turn"
    withdrawn = code.editor.list_raw("$/cancel_request")[-1]
    assert f"agent {withdrawn['params']['requestId']}" == asked["id"]
    assert not (code.cwd / "a.txt").exists()
    assert code.kinds_asked == ["edit", "switch_mode"]


@pytest.mark.parametrize(("chosen", "answered"), [("auto", "manual"), ("manual", "auto")])
async def test_the_later_of_two_choices_counts(talk: Talk, chosen: str, answered: str) -> None:
    """One in the editor's selector, one as the answer to a question about a switch."""

    async def answer(*_: Any) -> str:
        await talk.choose("approvals", chosen)
        talk.answer = dismiss
        return answered

    talk.answer = answer
    await talk.say("write a.txt: a")
    assert talk.shown == ("code", answered)
    assert (talk.cwd / "a.txt").exists() == (answered == "auto")
    assert await talk.stored() == ("code", answered)


async def test_a_mode_withdraws_a_question_that_waits_in_the_chat(gpt: Talk) -> None:
    await gpt.say("open question")
    await gpt.choose("mode", "code")
    assert gpt.calls == [("Which colour?", ["pending", "pending", "failed"])]
    await gpt.say("Green")
    assert gpt.said.endswith("Here I am.")


# In another window.


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
    assert await here.say("hello") == "end_turn"
    assert here.shown == ("ask", "manual"), "as was chosen in the other window"
    assert await there.say("hello") == "end_turn"
