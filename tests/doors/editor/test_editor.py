"""The agent in an editor: one process, real pipes, many sessions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from acp.schema import (
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    NewSessionResponse,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from doors.editor.prompt_turn import STOPPED_HERE
from tests.doors.editor.editor import Editor, choosing, dismiss, editing, never
from tests.provider.script import Answer, Asked, Call, Failure, Step, say
from tests.provider.server import KEY, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
MODEL = "openai:gpt-5.5"
CLAUDE = "anthropic:claude-sonnet-5-5"
STORY = "Once upon a time there was an agent that worked in modes."
WRITE = Call("write_file", {"path": "a.txt", "content": "a"})
COLOUR = {"question": "Which colour?"}
COLOURS = {**COLOUR, "follow_up": [{"text": "Red"}, {"text": "Blue"}]}
TWO_LINES = f"ls # {'the files ' * 30}, then\ntouch too-much"
EVERYWHERE = {"path": "a.txt", "old": "x", "new": "y", "replace_all": True}
PICTURE = {
    "question": "![a picture](http://127.0.0.1/leak)",
    "follow_up": [{"text": f"Reject {n}", "mode": "code" if n == 1 else None} for n in range(9)],
}
STEPS: dict[str, Step] = {
    "story": Answer(STORY, pause=0.2),
    STORY: Answer(STORY, pause=0.2),
    "think": Answer("Done.", thinking="Let me see."),
    "slowly write": Answer("I write, I write, I write, and I write.", (WRITE,), pause=0.1),
    "fail": Failure("quota", retry_after="0.01"),
    "question": Answer("", (Call("ask_followup_question", COLOURS),)),
    "open question": Answer("", (Call("ask_followup_question", COLOUR),)),
    "broken call": Answer("", (Call("write_file", '{"path": "a'),)),
    "unknown tool": Answer("", (Call("launch_rocket", {"to": "Mars"}),)),
    "declined": Answer("Half a", reason="content_filter"),
    "cut off": Answer("Half a", is_truncated=True),
    "same id": Answer("", (Call("list_files", {}, "call_0"),)),
    "same id again": Answer("", (Call("read_file", {"path": "a.txt"}, "call_0"),)),
    "long id": Answer("", (Call("list_files", {}, "call_" + "x" * 30),)),
    "long id again": Answer("", (Call("read_file", {"path": "a.txt"}, "call_" + "x" * 30),)),
    "two lines": Answer("", (Call("execute_command", {"command": TWO_LINES}),)),
    "everywhere": Answer("", (Call("edit_file", EVERYWHERE),)),
    "picture": Answer("", (Call("ask_followup_question", PICTURE),)),
    "two writes": Answer("", (WRITE, Call("write_file", {"path": "b.txt", "content": "b"}))),
}
"""What the model says to a message of the user's."""


def script(asked: Asked) -> Step:
    """What the provider's model says, by the user's last words and what came since."""
    last = asked.messages[-1]
    text = next(m.text for m in reversed(asked.messages) if m.type == "human")
    if text == "so far?":
        return say(f"You have read: {asked.messages[-2].text}")
    if last.type == "tool":
        return say(f"It says: {last.text}")
    return STEPS.get(text, say("Here I am."))


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    with serving(script) as provider:
        yield {
            "MODELS": f"{MODEL}, {CLAUDE}, openai:",
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": provider.url,
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> AsyncIterator[Editor]:
    async with editing(tmp_path_factory.mktemp("editor"), settings) as editor:
        yield editor


@pytest.fixture
def editor(process: Editor) -> Editor:
    """As if it had just been started."""
    process.answer = dismiss
    process.asked.clear()
    process.updates.clear()
    return process


class Talk:
    """One session."""

    def __init__(self, editor: Editor, opened: NewSessionResponse) -> None:
        self.editor = editor
        self.opened = opened
        self.id = opened.session_id

    @classmethod
    async def begun(cls, editor: Editor, workspace: Path, mode: str = "ask", **options: str) -> Any:
        talk = cls(editor, await editor.new(workspace))
        if mode != "ask":
            await editor.agent.set_session_mode(session_id=talk.id, mode_id=mode)
        for option, value in options.items():
            await talk.choose(option, value)
        return talk

    async def choose(self, option: str, value: Any) -> Any:
        return await self.editor.agent.set_config_option(
            session_id=self.id, config_id=option, value=value
        )

    async def say(self, text: str) -> str:
        return await self.editor.say(self.id, text)

    async def cancel(self) -> None:
        await self.editor.agent.cancel(session_id=self.id)

    def calls(self) -> dict[str, list[str]]:
        """The statuses of the calls, by title at the end."""
        titles: dict[str, str] = {}
        for one in [*self.editor.of("tool_call", self.id), *self.editor.of("tool_call_update")]:
            if one.title:
                titles[one.tool_call_id] = one.title
        return {title: self.editor.statuses(id) for id, title in titles.items()}


def content(call: Any) -> list[Any]:
    return list(call.content)


def current(options: Any) -> dict[str, str]:
    return {option.id: option.current_value for option in options}


# Modes and options.


async def test_modes_and_options_come_together(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    modes, options = talk.opened.modes, talk.opened.config_options
    assert modes.current_mode_id == "ask"
    slugs = [mode.id for mode in modes.available_modes]
    assert slugs == ["ask", "architect", "code", "debug"]
    mode, model, approvals = options
    assert (mode.id, mode.category, mode.type) == ("mode", "mode", "select")
    assert [option.value for option in mode.options] == slugs
    assert (model.category, [option.value for option in model.options]) == (
        "model",
        ["offline", MODEL, CLAUDE, "openai:"],
    )
    assert [option.value for option in approvals.options] == ["manual", "auto"]
    assert current(options) == {"mode": "ask", "model": "offline", "approvals": "manual"}


async def test_the_commands_are_the_modes(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    await editor.until(lambda: editor.of("available_commands_update", talk.id))
    (update,) = editor.of("available_commands_update", talk.id)
    assert [c.name for c in update.available_commands] == ["ask", "architect", "code", "debug"]


async def test_a_command_switches_and_says_the_rest(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace)
    assert await talk.say("/code write a.txt: one\nwrite b.txt: two") == "end_turn"
    assert (workspace / "a.txt").read_text() + (workspace / "b.txt").read_text() == "onetwo"
    assert [call.title for _, call, _ in editor.asked] == ["Write file a.txt", "Write file b.txt"]
    assert await talk.say("/architect") == "end_turn"
    assert editor.of("current_mode_update", talk.id)[-1].current_mode_id == "architect"
    assert editor.said(talk.id).endswith("Architect mode.")


async def test_a_mode_is_set_while_idle(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace)
    await editor.agent.set_session_mode(session_id=talk.id, mode_id="code")
    (mode,) = editor.of("current_mode_update", talk.id)
    (options,) = editor.of("config_option_update", talk.id)
    assert mode.current_mode_id == "code"
    assert current(options.config_options)["mode"] == "code"
    await talk.say("write a.txt: a")
    assert [call.kind for _, call, _ in editor.asked] == ["edit"]  # and no switch is asked for
    assert len(editor.of("current_mode_update", talk.id)) == 1


@pytest.mark.parametrize("option", ["mode", "approvals", "model", "colour"])
async def test_an_unknown_value_changes_nothing(
    editor: Editor, workspace: Path, option: str
) -> None:
    talk = await Talk.begun(editor, workspace)
    for value in ("surgeon", "", "openai:" if option == "model" else "ASK", True):
        with pytest.raises(RequestError) as refused:
            await talk.choose(option, value)
        assert refused.value.code == -32602
    assert "there are" in str(refused.value) or "the options are" in str(refused.value)
    with pytest.raises(RequestError) as refused:
        await editor.agent.set_session_mode(session_id=talk.id, mode_id="surgeon")
    assert refused.value.code == -32602
    assert "ask, architect, code, debug" in str(refused.value)
    opened = await editor.agent.resume_session(cwd=str(workspace), session_id=talk.id)
    assert current(opened.config_options) == current(talk.opened.config_options)
    assert not editor.of("current_mode_update") + editor.of("config_option_update")


async def test_a_model_is_chosen(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, model=MODEL)
    assert await talk.say("Hello.") == "end_turn"
    assert editor.said(talk.id) == "Here I am."
    await talk.choose("model", CLAUDE)
    await talk.choose("model", "offline")
    await talk.say("hello")
    assert "offline model" in editor.said(talk.id)


async def test_the_approvals_are_chosen(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, "code", approvals="auto")
    await talk.say("write a.txt: a")
    assert not editor.asked
    assert (workspace / "a.txt").exists()
    await talk.choose("approvals", "manual")
    editor.answer = choosing("reject")
    await talk.say("write b.txt: b")
    assert len(editor.asked) == 1
    assert not (workspace / "b.txt").exists()


async def test_a_mode_set_while_the_model_writes_holds_for_what_it_wrote(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL, approvals="auto")
    turn = asyncio.create_task(talk.say("slowly write"))
    await editor.until(lambda: editor.said(talk.id))
    await editor.agent.set_session_mode(session_id=talk.id, mode_id="ask")
    assert await turn == "end_turn"
    assert not (workspace / "a.txt").exists()
    assert talk.calls()["Write file a.txt"][-1] == "failed"
    assert "Ask mode has no 'edit' tools" in editor.said(talk.id)
    opened = await editor.agent.resume_session(cwd=str(workspace), session_id=talk.id)
    assert opened.modes is not None
    assert opened.modes.current_mode_id == "ask"


async def test_approvals_set_while_the_model_writes_hold_from_the_next_step(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL, approvals="auto")
    editor.answer = choosing("reject")
    turn = asyncio.create_task(talk.say("slowly write"))
    await editor.until(lambda: editor.said(talk.id))
    await talk.choose("approvals", "manual")
    assert await turn == "end_turn"
    assert not (workspace / "a.txt").exists()


async def test_a_model_set_while_another_writes_takes_over(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL, approvals="auto")
    turn = asyncio.create_task(talk.say("slowly write"))
    await editor.until(lambda: editor.said(talk.id))
    await talk.choose("model", "offline")
    assert await turn == "end_turn"
    assert (workspace / "a.txt").exists()
    assert "offline model" in editor.said(talk.id)


async def test_a_mode_set_during_a_question_takes_it_back(editor: Editor, workspace: Path) -> None:
    editor.answer = never
    talk = await Talk.begun(editor, workspace, "code")
    turn = asyncio.create_task(talk.say("write a.txt: a"))
    await editor.until(lambda: editor.asked)
    await editor.agent.set_session_mode(session_id=talk.id, mode_id="ask")
    editor.answer = choosing("reject")
    assert await turn == "end_turn"
    assert not (workspace / "a.txt").exists()
    assert [call.kind for _, call, _ in editor.asked] == ["edit", "switch_mode"]


# Permissions.


async def test_a_switch_is_asked_for_on_its_own_card(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("manual", "once")
    talk = await Talk.begun(editor, workspace)
    await talk.say("switch to code: I have to write.")
    _, call, options = editor.asked[0]
    (card,) = editor.of("tool_call", talk.id)
    assert call.tool_call_id == card.tool_call_id
    assert call.kind == card.kind == "switch_mode"
    assert "I have to write." in content(call)[0].content.text
    assert [(one.name, one.kind) for one in options] == [
        ("Yes, and auto-accept", "allow_always"),
        ("Yes, and approve each action", "allow_once"),
        ("Yes, but to Architect mode", "allow_once"),
        ("Yes, but to Debug mode", "allow_once"),
        ("No, stay", "reject_once"),
    ]
    assert editor.of("current_mode_update", talk.id)[-1].current_mode_id == "code"
    assert current(editor.of("config_option_update", talk.id)[-1].config_options) == {
        "mode": "code",
        "model": "offline",
        "approvals": "manual",
    }


@pytest.mark.parametrize(
    ("option", "mode", "approvals"),
    [
        ("auto", "code", "auto"),
        ("manual", "code", "manual"),
        ("to-debug", "debug", "manual"),
        ("reject", "ask", "manual"),
        ("an option that was not offered", "ask", "manual"),
        (None, "ask", "manual"),
    ],
)
async def test_what_comes_of_an_answer_to_a_switch(
    editor: Editor, workspace: Path, option: str | None, mode: str, approvals: str
) -> None:
    editor.answer = choosing(option) if option else dismiss
    talk = await Talk.begun(editor, workspace)
    known = option in ("auto", "manual", "to-debug", "reject")
    assert await talk.say("switch to code") == ("end_turn" if known else "cancelled")
    opened = await editor.agent.resume_session(cwd=str(workspace), session_id=talk.id)
    now = current(opened.config_options)
    assert (now["mode"], now["approvals"]) == (mode, approvals)
    assert talk.calls()["Switch to Code mode"][-1] == ("completed" if mode != "ask" else "failed")


async def test_a_plan_is_shown_to_who_decides(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once", "reject")
    talk = await Talk.begun(editor, workspace, "architect")
    await talk.say("write plan.md: First, look.\nswitch to code: The plan is made.")
    _, call, _ = editor.asked[1]
    texts = [one.content.text for one in content(call)]
    assert "The plan is made." in texts[0]
    assert "First, look." in texts[1]


async def test_always_is_for_this_session_and_this_file(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("always", "reject")
    talk = await Talk.begun(editor, workspace, "code")
    await talk.say("write a.txt: a\nwrite a.txt: b\nwrite c.txt: c")
    assert [one.name for one in editor.asked[0][2]] == [
        "Allow once",
        "Always in this session: Write file a.txt",
        "Reject",
    ]
    assert [one.kind for one in editor.asked[0][2]] == ["allow_once", "allow_always", "reject_once"]
    assert [call.title for _, call, _ in editor.asked] == ["Write file a.txt", "Write file c.txt"]
    assert (workspace / "a.txt").read_text() == "b"
    assert not (workspace / "c.txt").exists()
    other = await Talk.begun(editor, workspace, "code")
    await other.say("write a.txt: c")
    assert len(editor.asked) == 3


async def test_each_call_is_asked_for(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once", "reject")
    talk = await Talk.begun(editor, workspace, "code", model=MODEL)
    await talk.say("two writes")
    assert (workspace / "a.txt").exists()
    assert not (workspace / "b.txt").exists()
    assert talk.calls() == {
        "Write file a.txt": ["pending", "pending", "in_progress", "completed"],
        "Write file b.txt": ["pending", "pending", "failed"],
    }


async def test_what_runs_is_shown_whole(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("reject")
    (workspace / "a.txt").write_text("x\nx\n")
    talk = await Talk.begun(editor, workspace, "code", model=MODEL)
    await talk.say("two lines")
    await talk.say("everywhere")
    command, replacement = (call for _, call, _ in editor.asked)
    assert TWO_LINES in content(command)[0].content.text
    assert str(command.title).startswith("ls # the files")
    assert "In all 2 places" in content(replacement)[1].content.text
    assert (replacement.locations or [])[0].line == 1


async def test_what_the_model_says_is_not_for_ours(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, model=MODEL)
    await talk.say("picture")
    _, call, options = editor.asked[0]
    assert content(call)[0].content.text.startswith("```\n![a picture]")
    assert [option.name for option in options] == [
        "Answer: Reject 0",
        "Switch to code mode, and answer: Reject 1",
        "Answer: Reject 2",
        "Answer: Reject 3",
        "Answer in the chat",
    ]


@pytest.mark.parametrize("said", ["same id", "long id"])
async def test_an_id_that_comes_again_is_another_card(
    editor: Editor, workspace: Path, said: str
) -> None:
    (workspace / "a.txt").write_text("a")
    talk = await Talk.begun(editor, workspace, model=MODEL)
    await talk.say(said)
    await talk.say(f"{said} again")
    assert {title: statuses[-1] for title, statuses in talk.calls().items()} == {
        "List files": "completed",
        "Read file a.txt": "completed",
    }


async def test_an_answer_that_was_cut_off_says_so(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, model=MODEL)
    assert await talk.say("cut off") == "max_tokens"
    assert editor.said(talk.id).startswith("Half a")
    assert "limit of tokens" in editor.said(talk.id)
    before = len(editor.said(talk.id))
    assert await talk.say("declined") == "end_turn"
    assert editor.said(talk.id)[before:] == "Half a"


async def test_a_choice_is_not_lost_with_a_prompt_that_is(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("reject")
    talk = await Talk.begun(editor, workspace, "code", approvals="auto")
    await talk.say("hello")
    await talk.choose("approvals", "manual")
    await talk.choose("mode", "ask")
    with pytest.raises(RequestError, match="empty"):
        await talk.say(" ")
    turn = asyncio.create_task(talk.say("hello"))
    await asyncio.sleep(0.003)
    await talk.cancel()
    await turn
    await talk.say("write a.txt: a")
    assert [call.kind for _, call, _ in editor.asked] == ["switch_mode"]
    assert not (workspace / "a.txt").exists()


async def test_a_choice_right_behind_a_prompt_loses_none(editor: Editor, workspace: Path) -> None:
    for number in range(12):
        talk = await Talk.begun(editor, workspace)
        for mode in ("code", "ask"):
            before = len(editor.said(talk.id))
            turn = asyncio.create_task(talk.say("hello"))
            await asyncio.sleep(number / 400)
            await editor.agent.set_session_mode(session_id=talk.id, mode_id=mode)
            assert await turn == "end_turn"
            assert "offline model" in editor.said(talk.id)[before:]


@pytest.mark.parametrize(("option", "value"), [("approvals", "auto"), ("model", MODEL)])
async def test_a_choice_while_a_person_is_asked_holds_behind_the_answer(
    editor: Editor, workspace: Path, option: str, value: str
) -> None:
    talk = await Talk.begun(editor, workspace, "code")

    async def choose(*_: Any) -> str:
        await talk.choose(option, value)
        editor.answer = dismiss
        return "once"

    editor.answer = choose
    stop = await talk.say("write a.txt: a\nwrite b.txt: b")
    assert (workspace / "a.txt").exists()
    assert len(editor.asked) == 1
    assert stop == "end_turn"
    assert (workspace / "b.txt").exists() == (option == "approvals")


async def test_a_mode_set_while_a_question_is_open_takes_it_back(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, model=MODEL)
    await talk.say("open question")
    await editor.agent.set_session_mode(session_id=talk.id, mode_id="code")
    assert talk.calls() == {"Which colour?": ["pending", "pending", "failed"]}
    await talk.say("Green")
    assert editor.said(talk.id).endswith("Here I am.")


@pytest.mark.parametrize("code", [-32601, -32603])
async def test_an_editor_that_cannot_ask_approves_nothing(
    editor: Editor, workspace: Path, code: int
) -> None:
    async def fail(*_: Any) -> str:
        raise RequestError(code, "no dialogs here")

    editor.answer = fail
    talk = await Talk.begun(editor, workspace, "code")
    with pytest.raises(RequestError, match="no dialogs here"):
        await talk.say("write a.txt: a")
    assert talk.calls()["Write file a.txt"][-1] == "failed"
    editor.answer = choosing("once")
    assert await talk.say("write b.txt: b") == "end_turn"
    assert [path.name for path in workspace.iterdir()] == ["b.txt"]


async def test_a_dismissed_dialog_ends_the_turn_and_runs_nothing(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, "code")
    assert await talk.say("write a.txt: a") == "cancelled"
    assert not (workspace / "a.txt").exists()
    assert talk.calls()["Write file a.txt"] == ["pending", "pending", "failed"]
    editor.answer = choosing("once")
    assert await talk.say("write b.txt: b") == "end_turn"
    assert [path.name for path in workspace.iterdir()] == ["b.txt"]


async def test_a_question_is_answered_by_a_suggestion(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("answer-1")
    talk = await Talk.begun(editor, workspace, model=MODEL)
    assert await talk.say("question") == "end_turn"
    assert [one.name for one in editor.asked[0][2]] == [
        "Answer: Red",
        "Answer: Blue",
        "Answer in the chat",
    ]
    assert editor.said(talk.id) == "It says: Blue"


@pytest.mark.parametrize("said", ["question", "open question"])
async def test_a_question_is_answered_in_the_chat(
    editor: Editor, workspace: Path, said: str
) -> None:
    editor.answer = choosing("chat")
    talk = await Talk.begun(editor, workspace, model=MODEL)
    assert await talk.say(said) == "end_turn"
    assert len(editor.asked) == (said == "question")
    assert await talk.say("Green") == "end_turn"
    assert editor.said(talk.id).endswith("It says: Green")


async def test_words_answer_a_question_that_is_asked_again(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("chat")
    talk = await Talk.begun(editor, workspace, model=MODEL)
    await talk.say("question")
    await editor.agent.close_session(session_id=talk.id)
    editor.answer = never
    await editor.agent.load_session(cwd=str(workspace), session_id=talk.id, mcp_servers=[])
    await editor.until(lambda: len(editor.asked) == 2)
    assert await talk.say("Green") == "end_turn"
    assert editor.said(talk.id).endswith("It says: Green")


# Tool calls as they happen.


async def test_the_life_of_an_edit(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one two")
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    await talk.say("replace one with three in a.txt\nwrite a.txt: all")
    assert talk.calls() == {
        "Edit file a.txt": ["pending", "pending", "in_progress", "completed"],
        "Write file a.txt": ["pending", "pending", "in_progress", "completed"],
    }
    ends = [one for one in editor.of("tool_call_update", talk.id) if one.status == "completed"]
    edits = [(e.content[0].path, e.content[0].old_text, e.content[0].new_text) for e in ends]
    file = str(workspace / "a.txt")
    assert edits == [(file, "one", "three"), (file, "three two", "all")]
    assert [content(one)[0].type for _, one, _ in editor.asked] == ["diff", "diff"]
    start = editor.of("tool_call_update", talk.id)[0]
    assert start.locations[0].path == file
    assert start.raw_input == {"path": "a.txt", "old": "one", "new": "three"}


async def test_kinds(editor: Editor, workspace: Path) -> None:
    (workspace / "a.txt").write_text("needle")
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    await talk.say("list\nread a.txt\nsearch needle\nrun echo hi\ntodo: one; two\ndone: All done.")
    kinds = {one.title: one.kind for one in editor.of("tool_call_update", talk.id) if one.title}
    assert kinds == {
        "List files": "search",
        "Read file a.txt": "read",
        "Search files needle": "search",
        "echo hi": "execute",
        "Update the todo list": "think",
        "Done": "other",
    }
    assert {status for all in talk.calls().values() for status in all} == {
        "pending",
        "in_progress",
        "completed",
    }
    assert editor.said(talk.id) == "All done."


async def test_a_command_shows_its_output_as_it_comes(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    await talk.say("run echo one; sleep 1; echo two; sleep 0.5; exit 3")
    updates = [
        one.content[0].content.text
        for one in editor.of("tool_call_update", talk.id)
        if one.content and one.status in ("in_progress", "completed")
    ]
    assert updates[0] == "```\none\n\n```"
    assert updates[-1] == "```\none\ntwo\n[exit code 3]\n```"


async def test_a_failed_tool_is_failed(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    await talk.say("read missing.txt")
    assert talk.calls()["Read file missing.txt"] == ["pending", "pending", "in_progress", "failed"]
    end = editor.of("tool_call_update", talk.id)[-1]
    assert "No such file" in end.content[0].content.text
    assert "<data" not in end.content[0].content.text


@pytest.mark.parametrize("said", ["broken call", "unknown tool"])
async def test_a_call_that_makes_no_sense_is_failed(
    editor: Editor, workspace: Path, said: str
) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL)
    assert await talk.say(said) == "end_turn"
    (statuses,) = talk.calls().values()
    assert statuses[-1] == "failed"
    assert "in_progress" not in statuses


async def test_the_todo_list_is_a_plan(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    await talk.say("todo: one; two")
    (plan,) = editor.of("plan", talk.id)
    assert [(one.content, one.status) for one in plan.entries] == [
        ("one", "pending"),
        ("two", "pending"),
    ]


async def test_text_comes_in_pieces_and_thoughts_as_thoughts(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, model=CLAUDE)
    await talk.say("think")
    thoughts = editor.of("agent_thought_chunk", talk.id)
    assert "".join(one.content.text for one in thoughts) == "Let me see."
    assert editor.said(talk.id) == "Done."
    await talk.choose("model", MODEL)
    await talk.say("story")
    assert editor.said(talk.id) == f"Done.{STORY}"
    assert len(editor.of("agent_message_chunk", talk.id)) > 4


async def test_a_failing_provider_is_told_and_the_session_goes_on(
    editor: Editor, workspace: Path
) -> None:
    talk = await Talk.begun(editor, workspace, model=MODEL)
    with pytest.raises(RequestError) as failed:
        await talk.say("fail")
    assert "quota" in str(failed.value)
    assert await talk.say("Hello.") == "end_turn"
    assert editor.said(talk.id) == "Here I am."


# What is said.


async def test_files_that_are_named_or_attached(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    uri = f"file://{workspace}/my%20notes.txt"
    (workspace / "my notes.txt").write_text("needle")
    blocks: list[Any] = [
        TextContentBlock(type="text", text="read "),
        ResourceContentBlock(type="resource_link", uri=uri, name="my notes.txt"),
    ]
    await editor.agent.prompt(session_id=talk.id, prompt=blocks)
    assert "Read file my notes.txt" in talk.calls()
    resource = TextResourceContents(uri=uri, text="the text")
    blocks = [EmbeddedResourceContentBlock(type="resource", resource=resource)]
    assert (await editor.agent.prompt(session_id=talk.id, prompt=blocks)).stop_reason == "end_turn"
    image = ImageContentBlock(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    assert (await editor.agent.prompt(session_id=talk.id, prompt=[image])).stop_reason == "end_turn"
    before = len(editor.updates)
    await editor.agent.load_session(cwd=str(workspace), session_id=talk.id)
    told = [
        u.content for _, u in editor.updates[before:] if u.session_update == "user_message_chunk"
    ]
    assert told[0].text == "read my notes.txt"
    assert "the text" in told[1].text
    assert (told[2].data, told[2].mime_type) == ("iVBORw0KGgo=", "image/png")


async def test_an_empty_message_is_refused(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    for text in ("", "  \n"):
        with pytest.raises(RequestError, match="empty"):
            await talk.say(text)
    assert await talk.say("hello") == "end_turn"


async def test_a_message_of_ten_megabytes(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    text = "hello " + "x" * 10_000_000
    assert await talk.say(text) == "end_turn"
    assert await talk.say("hello") == "end_turn"
    await editor.agent.load_session(cwd=str(workspace), session_id=talk.id)
    assert [one.content.text for one in editor.of("user_message_chunk")] == [text, "hello"]


async def test_lone_surrogates_do_not_end_the_connection(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace)
    (workspace / "latin.txt").write_bytes(b"caf\xe9")
    assert await talk.say("read latin.txt") == "end_turn"
    assert await talk.say("hello") == "end_turn"


# Turns side by side, one after another, and cancelled.


async def test_prompts_of_one_session_wait_for_each_other(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    first = asyncio.create_task(talk.say("run sleep 0.5; echo one >> log"))
    await asyncio.sleep(0)
    second = asyncio.create_task(talk.say("run echo two >> log"))
    assert [await first, await second] == ["end_turn", "end_turn"]
    assert (workspace / "log").read_text() == "one\ntwo\n"


async def test_sessions_run_side_by_side(editor: Editor, workspace: Path, tmp_path: Path) -> None:
    editor.answer = choosing("once")
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    talks = [await Talk.begun(editor, folder, "code") for folder in (workspace, other_folder)]
    waiting = "for i in $(seq 100); do test -e go && exit; sleep 0.1; done"
    slow = asyncio.create_task(talks[0].say(f"run {waiting}"))
    await editor.until(lambda: "in_progress" in str(editor.of("tool_call_update", talks[0].id)))
    assert await talks[1].say("write a.txt: a") == "end_turn"
    assert not slow.done()
    (workspace / "go").touch()
    assert await slow == "end_turn"
    assert not (workspace / "a.txt").exists()
    assert (other_folder / "a.txt").exists()


async def cancelled(editor: Editor, talk: Talk, text: str, seen: Any) -> None:
    """Cancel once ``seen``; the turn ends, and the thread goes on."""
    turn = asyncio.create_task(talk.say(text))
    await editor.until(seen)
    await talk.cancel()
    async with asyncio.timeout(3.5):
        assert await turn == "cancelled"
    assert all(statuses[-1] == "failed" for statuses in talk.calls().values())
    count = len(editor.updates)
    editor.answer = choosing("once")
    assert await talk.say("write after.txt: well") == "end_turn"
    assert len(editor.updates) > count


@pytest.mark.parametrize("text", ["story", STORY])
async def test_cancel_while_the_model_speaks(editor: Editor, workspace: Path, text: str) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL)
    turn = asyncio.create_task(talk.say(text))
    await editor.until(lambda: editor.said(talk.id))
    await talk.cancel()
    assert await turn == "cancelled"
    heard = editor.said(talk.id)
    assert heard != STORY
    assert await talk.say("so far?") == "end_turn"
    assert editor.said(talk.id).endswith(f"You have read: {heard}\n\n{STOPPED_HERE}")


async def test_cancel_before_the_model_speaks(editor: Editor, workspace: Path) -> None:
    talk = await Talk.begun(editor, workspace, "code", model=MODEL)
    turn = asyncio.create_task(talk.say("story"))
    await asyncio.sleep(0)
    await talk.cancel()
    assert await turn == "cancelled"
    assert await talk.say("Hello.") == "end_turn"


async def test_cancel_while_a_person_is_asked(editor: Editor, workspace: Path) -> None:
    editor.answer = never
    talk = await Talk.begun(editor, workspace, "code")
    await cancelled(editor, talk, "write a.txt: a", lambda: editor.asked)
    assert [path.name for path in workspace.iterdir()] == ["after.txt"]


async def test_cancel_while_a_switch_is_asked_for(editor: Editor, workspace: Path) -> None:
    editor.answer = never
    talk = await Talk.begun(editor, workspace)
    turn = asyncio.create_task(talk.say("switch to code"))
    await editor.until(lambda: editor.asked)
    await talk.cancel()
    assert await turn == "cancelled"
    opened = await editor.agent.resume_session(cwd=str(workspace), session_id=talk.id)
    assert opened.modes is not None
    assert opened.modes.current_mode_id == "ask"
    await asyncio.sleep(0.2)
    assert len(editor.asked) == 1  # nor is it asked again


async def test_cancel_while_a_command_runs(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    line = "run echo begun; sleep 4; touch too-late"
    await cancelled(editor, talk, line, lambda: "begun" in str(editor.of("tool_call_update")))
    await asyncio.sleep(4.5)
    assert [path.name for path in workspace.iterdir()] == ["after.txt"]


async def test_cancel_at_any_moment(editor: Editor, workspace: Path) -> None:
    editor.answer = choosing("once")
    talk = await Talk.begun(editor, workspace, "code")
    for number in range(25):
        turn = asyncio.create_task(talk.say(f"write {number}: x\nwrite {number}: y"))
        await asyncio.sleep(number / 250)
        await talk.cancel()
        assert await turn in ("cancelled", "end_turn")
        await editor.new(workspace)  # no lock on the file is left behind
    assert await talk.say("hello") == "end_turn"


async def test_cancel_ends_what_waits_too(editor: Editor, workspace: Path) -> None:
    editor.answer = never
    talk = await Talk.begun(editor, workspace, "code")
    turns = [asyncio.create_task(talk.say(f"write {name}: x")) for name in "abc"]
    await editor.until(lambda: editor.asked)
    await talk.cancel()
    assert await asyncio.gather(*turns) == ["cancelled"] * 3
    await talk.cancel()  # with nothing under way
    editor.answer = choosing("once")
    assert await talk.say("write d: x") == "end_turn"
    assert [path.name for path in workspace.iterdir()] == ["d"]
