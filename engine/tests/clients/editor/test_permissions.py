"""Questions to a person: what is shown, what can be chosen, what comes of it."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acp import RequestError, schema

from modeshift.calls.requests import ActionRequest
from modeshift.editor.asking import _offer_approval
from modeshift.modes.effects import EFFECTS
from tests.clients.editor.editor import Answer, Editor, Talk, choosing, dismiss, never
from tests.clients.editor.model import GPT, TWO_LINES
from tests.tools.mcp.servers import RAW

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASKED = ["pending", "pending"]

ASK_FIRST = 'Whatever is not read-only asks, unless a rule or an "always" of yours allows it.'
AUTO_ACCEPT = "Edits of files run unasked; commands ask, as there is no sandbox."


async def test_a_switch_is_asked_about_on_its_own_call_with_its_plan(
    editor: Editor, workspace: Path
) -> None:
    editor.answer = choosing("once", "reject")
    talk = await editor.talk(workspace, "architect")
    await talk.say("write plan.md: First, look.\nswitch to code: I have to write.")
    _, call, options = editor.asked[1]
    shown = talk.of("tool_call")[1]
    assert (call.tool_call_id, call.kind) == (shown.tool_call_id, "switch_mode")
    reason, plan = (block.content.text for block in call.content or [])
    assert "I have to write." in reason
    assert "First, look." in plan
    assert [(option.name, option.kind) for option in options] == [
        ("Yes", "allow_once"),
        ("No, stay", "reject_once"),
        ("Yes, but to Ask mode", "allow_once"),
        ("Yes, but to Debug mode", "allow_once"),
        (f"Yes, and auto-accept. {AUTO_ACCEPT}", "allow_always"),
    ]


async def test_the_first_answer_to_a_switch_leaves_the_approvals_as_they_are(talk: Talk) -> None:
    """Which acpx gives by itself."""
    await talk.choose("approvals", "auto")
    talk.answer = choosing("auto")
    await talk.say("switch to code")
    ((_, _, options),) = talk.editor.asked
    assert [(options[n].name, options[n].kind) for n in (0, -1)] == [
        ("Yes", "allow_once"),
        (f"Yes, and ask first. {ASK_FIRST}", "allow_always"),
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


async def test_always_is_for_this_session_and_this_file(code: Talk, workspace: Path) -> None:
    code.answer = choosing("always", "reject")
    await code.say("write a.txt: a\nwrite a.txt: b\nwrite c.txt: c")
    always = ["Allow once", "Always in this session: Write file a.txt", "Reject"]
    assert code.options_asked[0] == always
    kinds = [option.kind for option in code.editor.asked[0][2]]
    assert kinds == ["allow_once", "allow_always", "reject_once"]
    assert [call.title for call in code.asked] == ["Write file a.txt", "Write file c.txt"]
    assert (workspace / "a.txt").read_text() == "b"
    assert not (workspace / "c.txt").exists()
    another = await code.editor.talk(workspace, "code")
    await another.say("write a.txt: c\nrun echo a | cat")
    assert another.options_asked == [always, ["Allow once", "Reject"]]
    await code.say("/allowed")
    assert "1: write_file, exactly 'a.txt', in Code mode" in code.said
    for wrong in ("2", "a.txt"):
        with pytest.raises(RequestError, match="/allowed shows no"):
            await code.say(f"/allowed {wrong}")
    await code.say("/allowed 1")
    assert code.said.endswith('No "always" of yours holds in this session.')
    await code.say("write a.txt: d")
    assert (len(code.asked), (workspace / "a.txt").read_text()) == (3, "b")


@pytest.mark.parametrize(
    ("first", "files", "statuses", "count"),
    [
        ("once", ["a.txt"], [*ASKED, "in_progress", "completed"], 2),
        ("reject", [], [*ASKED, "failed"], 1),
    ],
)
async def test_each_call_is_asked_about_unless_a_rejection_voids_it(
    editor: Editor, workspace: Path, first: str, files: list[str], statuses: list[str], count: int
) -> None:
    editor.answer = choosing(first, "reject")
    talk = await editor.talk(workspace, "code", model=GPT)
    await talk.say("two writes")
    assert [path.name for path in workspace.iterdir()] == files
    raw = editor.list_raw("session/request_permission")[-1]["params"]["toolCall"]["content"][0]
    assert (raw["type"], raw["oldText"]) == ("diff", None), "it says that the file is new"
    assert len(talk.asked) == count
    assert talk.calls[0] == ("Write file a.txt", statuses)
    assert talk.ends[1] == ("Write file b.txt", "failed")


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
    assert words.content.text.count("\n") == 1, "an editor wraps it"


async def test_the_models_words_do_not_look_like_ours(gpt: Talk) -> None:
    await gpt.say("picture")
    content: Any = gpt.asked[0].content
    assert content[0].content.text.startswith(r"!\[a picture\]")
    (options,) = gpt.options_asked
    assert options[:2] == ["Answer: Reject 0", "Switch to code mode, and answer: Reject 1"]
    assert options[2:] == ["Answer: Reject 2", "Answer: Reject 3", "Answer in the chat"]


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


@pytest.mark.parametrize(("said", "is_reopened"), [("question", False), ("open question", True)])
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
    always = next(option for option in _offer_approval(action, view) if option.id == "always")
    assert always.name == f"Always in this session: {site}"


async def test_all_tools_of_a_server_are_allowed_at_once(editor: Editor, workspace: Path) -> None:
    """Of a real one, which the editor brings for its session."""
    editor.answer = choosing("always-server", "reject")
    tools = json.dumps([{"name": "one"}, {"name": "two"}])
    args = ["-S", str(RAW), "plain", tools]
    servers: list[Any] = [
        schema.McpServerStdio(name=name, command=sys.executable, args=args, env=[]) for name in "ab"
    ]
    opened = await editor.agent.new_session(cwd=str(workspace), mcp_servers=servers)
    talk = Talk(editor, opened.session_id, workspace, opened)
    for tool in ("a__one", "a__two", "b__one"):
        await talk.say(f"call mcp__{tool}")
    assert "Always in this session: all of mcp__a" in talk.options_asked[0]
    assert len(talk.asked) == 2
    assert str(talk.results).count("done with") == 2
