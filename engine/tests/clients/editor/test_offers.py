"""Forms, for editors that offer them; the others are asked as ever."""

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
