"""Forms and terminals, for editors that offer them; the others are asked and shown as ever."""

from pathlib import Path
from typing import Any

import pytest

from tests.doors.editor.editor import Editor, choosing
from tests.doors.editor.model import GPT

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def editor(process_for_all: Editor) -> Editor:
    process_for_all.reset(choosing("once"))
    return process_for_all


@pytest.mark.parametrize(
    ("filled", "said"),
    [
        ({"suggestion": "answer-1"}, "It says: Blue"),
        ({"suggestion": "answer-0", "words": " A dark green "}, "It says: A dark green"),
        ({"words": ""}, ""),
        ("decline", ""),
    ],
)
async def test_a_question_is_a_form(
    editor: Editor, workspace: Path, filled: Any, said: str
) -> None:
    editor.filled = filled
    talk = await editor.talk(workspace, model=GPT)
    assert await talk.say("question") == "end_turn"
    ((asked, form),) = editor.forms
    fields = form.requested_schema.properties
    assert (asked, list(fields)) == ("Which colour?", ["suggestion", "words"])
    assert [one.title for one in fields["suggestion"].one_of] == ["Answer: Red", "Answer: Blue"]
    assert fields["suggestion"].default is None
    assert talk.said == said
    assert not talk.asked
    if not said:  # it waits for an answer in the chat
        assert await talk.say("Grey") == "end_turn"
        assert talk.said == "It says: Grey"


@pytest.mark.parametrize("filled", ["cancel", {"suggestion": "answer-7"}, {"suggestion": ["x"]}])
async def test_a_form_that_is_closed_or_wrong_answers_nothing(
    editor: Editor, workspace: Path, filled: Any
) -> None:
    editor.filled = filled
    talk = await editor.talk(workspace, model=GPT)
    assert await talk.say("question") == "cancelled"
    assert talk.said == ""


async def test_a_command_has_a_terminal(editor: Editor, workspace: Path) -> None:
    talk = await editor.talk(workspace, "code")
    await talk.say("run echo one; echo two; exit 3")
    metas = [one.field_meta for kind in ("tool_call", "tool_call_update") for one in talk.of(kind)]
    shown = [meta for meta in metas if meta]
    (call,) = {one.tool_call_id for one in talk.of("tool_call")}
    assert shown[0] == {"terminal_info": {"terminal_id": call, "cwd": str(workspace)}}
    printed = "".join(one["terminal_output"]["data"] for one in shown if "terminal_output" in one)
    assert printed == "one\ntwo\n"
    exited = {"terminal_id": call, "exit_code": 3, "signal": None}
    assert shown[-1]["terminal_exit"] == exited
    assert [one.type for one in talk.results[-1]] == ["terminal", "content"]
    assert talk.ends[-1][1] == "failed"
    assert "terminal" not in str((await talk.replayed()).results)
    assert talk.results[0][0].content.text == "```\none\ntwo\n[exit code 3]\n```"
