"""Questions to a person: what is shown, what can be chosen, what comes of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acp import RequestError

from modeshift.editor.display.permission_requests import _offer_approval
from modeshift.graph.approvals.requests import ActionRequest
from modeshift.modes.effects import EFFECTS
from tests.doors.editor.editor import Answer, Editor, Talk, choosing, dismiss, never
from tests.doors.editor.model import GPT, TWO_LINES

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASKED = ["pending", "pending"]


async def test_a_switch_is_asked_about_on_its_own_call(talk: Talk) -> None:
    talk.answer = choosing("manual", "once")
    await talk.say("switch to code: I have to write.")
    ((_, call, options),) = talk.editor.asked
    (shown,) = talk.of("tool_call")
    assert (call.tool_call_id, call.kind) == (shown.tool_call_id, "switch_mode")
    assert "I have to write." in str(call.content)
    assert [(one.name, one.kind) for one in options] == [
        ("Yes, and approve each action", "allow_once"),
        ("Yes, but to Architect mode", "allow_once"),
        ("Yes, but to Debug mode", "allow_once"),
        ("No, stay", "reject_once"),
        ("Yes, and auto-accept", "allow_always"),
    ]


async def test_the_first_answer_to_a_switch_leaves_the_approvals_as_they_are(talk: Talk) -> None:
    """Which acpx gives by itself."""
    await talk.choose("approvals", "auto")
    talk.answer = choosing("auto")
    await talk.say("switch to code")
    ((_, _, options),) = talk.editor.asked
    assert [(options[n].name, options[n].kind) for n in (0, -1)] == [
        ("Yes, and auto-accept", "allow_once"),
        ("Yes, and approve each action", "allow_always"),
    ]
    assert talk.shown == ("code", "auto")
    talk.answer = choosing("manual")
    await talk.say("switch to ask")
    assert talk.shown == ("ask", "manual")


@pytest.mark.parametrize(
    ("option", "stop", "shown"),
    [
        ("auto", "end_turn", ("code", "auto")),
        ("manual", "end_turn", ("code", "manual")),
        ("to-debug", "end_turn", ("debug", "manual")),
        ("reject", "end_turn", ("ask", "manual")),
        ("an option that was not offered", "cancelled", ("ask", "manual")),
        (None, "cancelled", ("ask", "manual")),
    ],
)
async def test_what_comes_of_an_answer_to_a_switch(
    talk: Talk, option: str | None, stop: str, shown: tuple[str, str]
) -> None:
    talk.answer = choosing(option) if option else dismiss
    assert await talk.say("switch to code") == stop
    assert talk.shown == shown
    assert talk.ends == [("Switch to Code mode", "failed" if shown[0] == "ask" else "completed")]
    assert await talk.stored() == shown


async def test_a_plan_is_shown_to_who_decides_on_the_switch(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = choosing("once", "reject")
    talk = await editor.talk(workspace, "architect")
    await talk.say("write plan.md: First, look.\nswitch to code: The plan is made.")
    reason, plan = (one.content.text for one in talk.asked[1].content or [])
    assert "The plan is made." in reason
    assert "First, look." in plan


async def test_always_is_for_this_session_and_this_file(code: Talk, workspace: Path) -> None:
    code.answer = choosing("always", "reject")
    await code.say("write a.txt: a\nwrite a.txt: b\nwrite c.txt: c")
    always = ["Allow once", "Always in this session: Write file a.txt", "Reject"]
    assert code.options_asked[0] == always
    assert [one.kind for one in code.editor.asked[0][2]] == [
        "allow_once",
        "allow_always",
        "reject_once",
    ]
    assert [call.title for call in code.asked] == ["Write file a.txt", "Write file c.txt"]
    assert (workspace / "a.txt").read_text() == "b"
    assert not (workspace / "c.txt").exists()
    another = await code.editor.talk(workspace, "code")
    await another.say("write a.txt: c\nrun echo a | cat")
    assert another.options_asked == [always, ["Allow once", "Reject"]]


async def test_each_call_is_asked_about(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once", "reject")
    talk = await editor.talk(workspace, "code", model=GPT)
    await talk.say("two writes")
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]
    raw = editor.list_raw("session/request_permission")[-1]["params"]["toolCall"]["content"][0]
    assert (raw["type"], raw["oldText"]) == ("diff", None), "it says that the file is new"
    assert talk.calls == [
        ("Write file a.txt", [*ASKED, "in_progress", "completed"]),
        ("Write file b.txt", [*ASKED, "failed"]),
    ]


async def test_what_a_rejection_voids_is_not_asked_about(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("reject")
    talk = await editor.talk(workspace, "code", model=GPT)
    await talk.say("two writes")
    assert [call.title for call in talk.asked] == ["Write file a.txt"]
    assert [call for call, _ in talk.ends] == ["Write file a.txt", "Write file b.txt"]
    assert {state for _, state in talk.ends} == {"failed"}
    assert not list(workspace.iterdir())


async def test_what_runs_is_shown_whole(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("reject")
    (workspace / "a.txt").write_text("x\nx\none\n")
    talk = await editor.talk(workspace, "code", model=GPT)
    await talk.say("two lines")
    await talk.say("everywhere")
    command, replacement = talk.asked
    assert TWO_LINES in (command.content or [])[0].content.text
    assert str(command.title).startswith("ls # the files")
    shown: list[Any] = list(replacement.content or [])
    assert (shown[0].old_text, shown[0].new_text) == ("x\nx\none\n", "y\ny\ntwo\n")
    long = "x" * 450_000  # too long for a diff of ours
    talk = await editor.talk(workspace, "code")
    await talk.say(f"write long.txt: {long}")
    assert long in str(talk.asked[0].content)


async def test_a_question_says_which_approvals_are_in_force(code: Talk) -> None:
    code.answer = choosing("reject")
    await code.say("run ls | cat")
    words: Any = (code.asked[0].content or [])[-1]
    assert words.content.text.endswith("  \nApprovals: Ask first.")
    assert "```" not in words.content.text
    assert max(map(len, words.content.text.splitlines())) <= 82


async def test_the_models_words_do_not_look_like_ours(gpt: Talk) -> None:
    await gpt.say("picture")
    content: Any = gpt.asked[0].content
    assert content[0].content.text.startswith(r"!\[a picture\]")
    assert gpt.options_asked == [
        [
            "Answer: Reject 0",
            "Switch to code mode, and answer: Reject 1",
            "Answer: Reject 2",
            "Answer: Reject 3",
            "Answer in the chat",
        ]
    ]


async def cannot_ask(*_: Any) -> str:
    raise RequestError(-32601, "no dialogs here")


@pytest.mark.parametrize("answer", [dismiss, cannot_ask])
async def test_a_dialog_without_an_answer_ends_the_turn(code: Talk, answer: Answer) -> None:
    code.answer = answer
    if answer is dismiss:
        assert await code.say("write a.txt: a") == "cancelled"
    else:
        with pytest.raises(RequestError, match="no dialogs here"):
            await code.say("write a.txt: a")
    assert code.calls == [("Write file a.txt", [*ASKED, "failed"])]
    code.answer = choosing("once")
    assert await code.say("write b.txt: b") == "end_turn"
    assert [path.name for path in code.cwd.iterdir()] == ["b.txt"]


async def test_a_question_is_answered_by_a_suggestion(gpt: Talk) -> None:
    gpt.answer = choosing("answer-1")
    assert await gpt.say("question") == "end_turn"
    assert gpt.options_asked == [["Answer: Red", "Answer: Blue", "Answer in the chat"]]
    assert gpt.said == "It says: Blue"


@pytest.mark.parametrize("said", ["question", "open question"])
@pytest.mark.parametrize("is_reopened", [False, True])
async def test_a_question_is_answered_in_the_chat(gpt: Talk, said: str, is_reopened: bool) -> None:
    gpt.answer = choosing("chat")
    assert await gpt.say(said) == "end_turn"
    assert len(gpt.asked) == (said == "question")
    if is_reopened:
        gpt.answer = never
        gpt = await gpt.replayed()
        assert gpt.ends == [("Which colour?", "pending")]
        await gpt.editor.until(lambda: "Which colour?" in gpt.said)
    assert await gpt.say("Green") == "end_turn"
    assert gpt.said.endswith("It says: Green")
    assert gpt.ends == [("Which colour?", "completed")]


async def test_always_allowing_a_site_shows_whose_it_is() -> None:
    site = f"https://docs.python.org.{'a' * 60}.evil.example/*"
    action = ActionRequest(name="fetch", args={}, description="", id="1", remember=site)
    view: Any = SimpleNamespace(effect=EFFECTS["network"], title="fetch")
    always = next(one for one in _offer_approval(action, view) if one.id == "always")
    assert always.name == f"Always in this session: {site}"
