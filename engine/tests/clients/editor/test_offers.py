"""Forms and terminals, for editors that offer them; the others are asked and shown as ever."""

from typing import Any

import pytest

from tests.clients.editor.editor import Editor, Talk, choosing

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
async def test_a_question_is_a_form(gpt: Talk, filled: Any, said: str) -> None:
    gpt.editor.filled = filled
    assert await gpt.say("question") == "end_turn"
    ((asked, form),) = gpt.editor.forms
    fields = form.requested_schema.properties
    assert (asked, list(fields)) == ("Which colour?", ["suggestion", "words"])
    assert [choice.title for choice in fields["suggestion"].one_of] == [
        "Answer: Red",
        "Answer: Blue",
    ]
    assert fields["suggestion"].default is None
    assert gpt.said == said
    assert not gpt.asked
    if not said:  # it waits for an answer in the chat
        assert await gpt.say("Grey") == "end_turn"
        assert gpt.said == "It says: Grey"


@pytest.mark.parametrize("filled", ["cancel", {"suggestion": "answer-7"}, {"suggestion": ["x"]}])
async def test_a_form_that_is_closed_or_wrong_answers_nothing(gpt: Talk, filled: Any) -> None:
    gpt.editor.filled = filled
    assert await gpt.say("question") == "cancelled"
    assert gpt.said == ""


async def test_a_command_has_a_terminal(code: Talk) -> None:
    await code.say("run echo one; echo two; exit 3")
    metas = [
        update.field_meta for kind in ("tool_call", "tool_call_update") for update in code.of(kind)
    ]
    shown = [meta for meta in metas if meta]
    (call,) = {update.tool_call_id for update in code.of("tool_call")}
    assert shown[0] == {"terminal_info": {"terminal_id": call, "cwd": str(code.cwd)}}
    printed = "".join(
        meta["terminal_output"]["data"] for meta in shown if "terminal_output" in meta
    )
    assert printed == "one\ntwo\n"
    exited = {"terminal_id": call, "exit_code": 3, "signal": None}
    assert shown[-1]["terminal_exit"] == exited
    assert [block.type for block in code.results[-1]] == ["terminal", "content"]
    assert code.ends[-1][1] == "failed"
    assert "terminal" not in str((await code.replayed()).results)
    assert code.results[0][0].content.text == "```\none\ntwo\n[exit code 3]\n```"
