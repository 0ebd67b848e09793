"""Repair: whatever the history was, a provider takes the repaired one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.messages.repair import NOT_RUN, UNKNOWN, open_calls, repair
from tests.harness.conversation import problems

IDS = st.sampled_from(["a", "b", "c", "d"])


def ai(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "read_file", "args": {}, "id": id} for id in ids])


def result(id: str) -> ToolMessage:
    return ToolMessage("ok", tool_call_id=id)


MESSAGES: Any = st.lists(
    st.one_of(
        st.builds(HumanMessage, st.just("hello")),
        st.builds(AIMessage, st.just("answer")),
        st.lists(IDS, unique=True, min_size=1, max_size=3).map(lambda ids: ai(*ids)),
        IDS.map(result),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_any_history_becomes_valid(messages: list[AnyMessage]) -> None:
    after = repair(messages)
    assert problems(list(after)) == []
    assert repair(after) == after
    kept = [message for message in after if not isinstance(message, ToolMessage)]
    assert kept == [message for message in messages if not isinstance(message, ToolMessage)]
    assert open_calls(after) == []


@given(MESSAGES)
def test_a_valid_history_is_left_alone(messages: list[AnyMessage]) -> None:
    if not problems(list(messages)) and not open_calls(messages):
        assert repair(messages) == messages


def test_missing_answers_say_what_is_known() -> None:
    after = repair([ai("a", "b", "c"), result("b"), HumanMessage("hello")], running=["c"])
    assert [message.text for message in after] == ["", NOT_RUN, "ok", UNKNOWN, "hello"]
    assert [m.status for m in after if isinstance(m, ToolMessage)] == ["error", "success", "error"]


def test_open_calls_are_those_of_the_last_message() -> None:
    assert open_calls([]) == []
    assert [call["id"] for call in open_calls([ai("a", "b"), result("a")])] == ["b"]
    assert open_calls([ai("a"), HumanMessage("hello")]) == []
