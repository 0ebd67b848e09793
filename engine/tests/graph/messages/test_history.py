"""The history that is sent: whatever it was, a provider takes it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from modeshift.messages.instructions import prepare_for_provider
from modeshift.messages.repair import (
    NOT_RUN,
    UNKNOWN,
    build_not_run_result,
    find_open_calls,
    repair,
)
from tests.harness.conversation import problems

IDS = st.sampled_from(["a", "b", "c", "d"])


def ai(*ids: str, **metadata: Any) -> AIMessage:
    calls = [{"name": "read_file", "args": {}, "id": id} for id in ids]
    return AIMessage("", tool_calls=calls, response_metadata=metadata)


def result(id: str, text: str = "ok") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id)


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
    repaired = repair(messages)
    assert problems(list(repaired)) == []
    assert repair(repaired) == repaired
    assert find_open_calls(repaired) == []
    others = [message for message in messages if not isinstance(message, ToolMessage)]
    assert [message for message in repaired if not isinstance(message, ToolMessage)] == others
    if not problems(list(messages)) and not find_open_calls(messages):
        assert repaired == messages, "a valid one is left alone"


def test_results_that_are_missing_late_or_doubled() -> None:
    """A missing one says what is known; of two, the first is the true one."""
    repaired = repair(
        [ai("a", "b", "c"), HumanMessage("hello"), result("b"), result("b", "forged")],
        {"c": build_not_run_result(tool_call(name="read_file", args={}, id="c"), UNKNOWN)},
    )
    assert [message.text for message in repaired] == ["", "ok", NOT_RUN, UNKNOWN, "hello"]
    statuses = [message.status for message in repaired if isinstance(message, ToolMessage)]
    assert statuses == ["success", "error", "error"]


def test_thinking_goes_to_its_own_provider_only() -> None:
    blocks: Any = [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Yes."}]
    thought = AIMessage(blocks, response_metadata={"model_provider": "anthropic"})
    history: list[AnyMessage] = [AIMessage("Hello!"), HumanMessage("Do you?"), thought]
    first, *rest = prepare_for_provider(history, "anthropic")
    assert isinstance(first, HumanMessage)
    assert rest == history
    assert prepare_for_provider(history, "openai-chat")[-1].content == "Yes."
    beside = AIMessage("Yes.", additional_kwargs={"reasoning_content": "x"})
    beside.response_metadata["model_provider"] = "ollama"
    assert prepare_for_provider([history[1], beside], "ollama")[-1] == beside
    assert prepare_for_provider([history[1], beside], "groq")[-1].additional_kwargs == {}
    assert prepare_for_provider(history[1:], "anthropic") == history[1:]


def test_ids_go_back_to_the_provider_that_gave_them() -> None:
    """Some servers keep something in them; others take only so many characters."""
    ids = ["a" * 64, "b" * 65, "c/d" * 40, "e"]
    history: list[AnyMessage]
    history = [HumanMessage("go"), ai(*ids, model_provider="openai"), *map(result, ids)]
    assert prepare_for_provider(history, "openai-chat") == history
    assert prepare_for_provider(history, "ollama") == history
    for origin, kept in (("openai", ["a" * 64, "e"]), ("anthropic", ["a" * 64, "b" * 65, "e"])):
        sent = prepare_for_provider(history, origin)
        assert sent == prepare_for_provider(history, origin), "the same at every step"
        called = [
            str(call["id"])
            for message in sent
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        ]
        assert [
            message.tool_call_id for message in sent if isinstance(message, ToolMessage)
        ] == called
        assert [id for id in called if id in ids] == kept
        assert (len(set(called)), max(map(len, set(called) - set(ids)))) == (4, 37)
