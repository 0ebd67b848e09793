"""What is left of a history is one that providers take, whatever was in it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from modeshift.messages.repair import mark_as_data, remove_marks
from modeshift.messages.thinking import drop_unbound_thinking, has_thinking, record_prefix
from modeshift.turns.compaction import (
    MAX_RESULT,
    estimate_tokens,
    replace_by_summary,
    split_for_summary,
)
from tests.harness.conversation import problems

LENGTHS = st.integers(0, 4 * MAX_RESULT)
STEP = st.lists(LENGTHS, max_size=3).map(lambda lengths: ["step", *lengths])
HISTORY = st.lists(st.one_of(STEP, LENGTHS.map(lambda length: ["user", length])), max_size=12)
BUDGET = st.sampled_from([0, 20, 100, 500, 2000, 6000])
SUMMARY = AIMessage("In short.", id="summary")


def build(history: list[list[Any]]) -> list[AnyMessage]:
    """A history with thinking; the last step of a turn need not be an answer."""
    messages: list[AnyMessage] = [HumanMessage("first")]
    for kind, *lengths in history:
        if kind == "user":
            messages.append(HumanMessage("u" * lengths[0]))
            continue
        ids = [f"{len(messages)}_{number}" for number in range(len(lengths))]
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        calls = [{"name": "read", "args": {}, "id": id} for id in ids]
        answer = AIMessage([thought, {"type": "text", "text": "So."}], tool_calls=calls)
        messages.append(record_prefix(answer, "prefix", messages))
        messages += [
            ToolMessage(mark_as_data("r" * size, "a", id), tool_call_id=id)
            for id, size in zip(ids, lengths, strict=True)
        ]
    return messages


@given(HISTORY, BUDGET)
def test_behind_a_summary(history: list[list[Any]], budget: int) -> None:
    messages = build(history)
    shorter = replace_by_summary(messages, SUMMARY, budget)
    assert shorter[0] == SUMMARY
    assert problems([*shorter]) == []
    assert drop_unbound_thinking(shorter) == (shorter, 0), "what is left fits what is before it"
    assert not any(map(has_thinking, shorter))
    said = [message for message in messages if isinstance(message, HumanMessage)]
    kept = [message for message in shorter if isinstance(message, HumanMessage)]
    if isinstance(messages[-1], AIMessage):
        assert isinstance(shorter[-1], AIMessage), "no turn is due"
    else:
        assert not isinstance(shorter[-1], AIMessage), "a turn is due"
    if shorter[1:]:
        assert kept[-1] == said[-1]
        asked = estimate_tokens([said[-1]])
        assert estimate_tokens(shorter[1:]) <= budget + asked


@given(HISTORY, BUDGET)
def test_what_is_to_be_summarized(history: list[list[Any]], budget: int) -> None:
    """In parts, none of which is left out, and none of which parts a call from its result."""
    messages = left = build(history)
    parts: list[list[AnyMessage]] = []
    while left:
        part, left = split_for_summary(left, budget)
        parts.append(part)
        assert problems([*part]) == []
        calls = sum(len(message.tool_calls) for message in part if isinstance(message, AIMessage))
        results = [message.text for message in part if isinstance(message, ToolMessage)]
        assert len(results) == calls
        is_step = sum(not isinstance(message, ToolMessage) for message in part) == 1
        assert is_step or estimate_tokens(part) <= budget
        assert all(len(text) < MAX_RESULT + 50 for text in results)
        assert not any("data-" in remove_marks(text) for text in results), "marks are closed"
        assert drop_unbound_thinking(part) == (part, 0)
    assert [message.type for part in parts for message in part] == [
        message.type for message in messages
    ]
