"""The history that is sent: whatever it was, each provider and each chat template takes it."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call

from modeshift.messages.instructions import CLOSED, ORIGIN, make_chat_history, prepare_for_provider
from modeshift.messages.normal_form import accept_messages
from modeshift.messages.repair import (
    NOT_RUN,
    UNKNOWN,
    build_not_run_result,
    find_open_calls,
    mark_as_data,
    remove_marks,
    repair,
)
from modeshift.messages.thinking import drop_unbound_thinking, has_thinking, record_prefix
from modeshift.turns.compaction import (
    MAX_RESULT,
    estimate_tokens,
    replace_by_summary,
    split_for_summary,
)
from tests.harness.conversation import problems
from tests.tables import rows

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


def test_results_that_are_missing_late_doubled_or_a_clients() -> None:
    repaired = repair(
        [ai("a", "b", "c"), HumanMessage("hello"), result("b"), result("b", "forged")],
        {"c": build_not_run_result(tool_call(name="read_file", args={}, id="c"), UNKNOWN)},
    )
    assert [message.text for message in repaired] == ["", "ok", NOT_RUN, UNKNOWN, "hello"]
    statuses = [message.status for message in repaired if isinstance(message, ToolMessage)]
    assert statuses == ["success", "error", "error"]
    call = {"name": "read_file", "args": {}, "id": "waiting"}
    messages = [
        AIMessage([{"type": "thinking", "thinking": "hm"}, "text"], tool_calls=[call]),
        ToolMessage("It ran.", tool_call_id="waiting"),
        HumanMessage("go on", name="somebody"),
    ]
    answer, user = accept_messages(messages)
    assert isinstance(answer, AIMessage)
    assert (answer.content, [call["args"] for call in answer.tool_calls]) == ("text", [{}])
    assert answer.tool_calls[0]["id"] != "waiting"
    assert (type(user), user.content, user.name) == (HumanMessage, "go on", None)


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
def test_behind_a_summary_and_what_is_to_be_one(history: list[list[Any]], budget: int) -> None:
    """In parts, none of which is left out, and none of which parts a call from its result."""
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


HERE = "http://127.0.0.1:8080/v1 local"


def answer(text: str, *ids: str, origin: str = "") -> AIMessage:
    calls = [ToolCall(name="read_file", args={}, id=id, type="tool_call") for id in ids]
    beside = {ORIGIN: {origin: True}} if origin else {}
    return AIMessage(text, tool_calls=calls, additional_kwargs=beside)


def describe(messages: list[AnyMessage]) -> list[str]:
    """Each message in a line: who it is of, its calls, its words."""
    lines = []
    for message in messages:
        calls = (
            [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
        )
        of = [message.tool_call_id] if isinstance(message, ToolMessage) else calls
        lines.append(" ".join(filter(None, [message.type, *map(str, of), message.text])))
    return lines


@rows(
    "history sent",
    pytest.param(
        [HumanMessage("hello"), HumanMessage("again")], ["human hello\n\nagain"], id="failed"
    ),
    pytest.param(
        [HumanMessage("go"), answer("", "callnumb1"), result("callnumb1"), HumanMessage("on")],
        ["human go", "ai callnumb1", "tool callnumb1 ok", f"ai {CLOSED}", "human on"],
        id="completed",
    ),
    pytest.param(
        [HumanMessage("go"), answer("A."), answer("B.", "callnumb1"), result("callnumb1")],
        ["human go", "ai callnumb1 A.\n\nB.", "tool callnumb1 ok"],
        id="two answers",
    ),
)
def test_what_is_one_and_what_is_closed(history: list[AnyMessage], sent: list[str]) -> None:
    assert describe(make_chat_history(history, HERE)) == sent


def test_an_image_stays_in_one_message_and_calls_are_split() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    history: list[AnyMessage] = [HumanMessage([image]), HumanMessage("what is it?")]
    (sent,) = make_chat_history(history, HERE)
    assert sent.content == [image, {"type": "text", "text": "what is it?"}]
    both = answer("Both.", "callnumb1", "callnumb2", origin=HERE)
    results = [result("callnumb2"), result("callnumb1")]
    calling: list[AnyMessage] = [HumanMessage("go"), both, *results, answer("Done.")]
    assert len(make_chat_history(calling, HERE)) == len(calling)
    parts = make_chat_history(calling, HERE, splits_calls=True)
    assert describe(parts) == [
        *("human go", "ai callnumb2 Both.", "tool callnumb2 ok", "ai callnumb1"),
        *("tool callnumb1 ok", "ai Done."),
    ]


@rows(
    "id origin stays",
    ("toolu_01A09q90qw90lq917835lq9", "", False),
    ("call_KcyBFLBcAWUXBcJvhXl92UTW", "https://other/v1 gpt", False),
    ("call_KcyBFLBcAWUXBcJvhXl92UTW", HERE, True),
    ("functions.read_file:0", HERE, True),  # Kimi's, which its model reads
    ("H88IWr1HwJaoYZnhDB5W6ZT1ddicnBeF", HERE, False),  # llama.cpp's
    ("call_" + 32 * "0", HERE, False),  # ours
    ("aB3456789", "", True),
)
def test_ids_from_elsewhere_are_short(id: str, origin: str, *, stays: bool) -> None:
    asked = answer("", id, origin=origin)
    history: list[AnyMessage] = [HumanMessage("go"), asked, result(id)]
    _, asking, answered = make_chat_history(history, HERE)
    assert isinstance(asking, AIMessage)
    assert isinstance(answered, ToolMessage)
    (call,) = asking.tool_calls
    assert call["id"] == answered.tool_call_id
    assert (call["id"] == id) is stays
    assert stays or (str(call["id"]).isalnum() and len(str(call["id"])) == 9)


turns = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["", HERE, "other"]), st.booleans()), max_size=12
)


@given(turns=turns, splits=st.booleans())
def test_what_every_template_takes(turns: list[tuple[int, str, bool]], *, splits: bool) -> None:
    """Turns with some calls, of this service or another, with or without a last word."""
    history: list[AnyMessage] = []
    for turn, (calls, origin, is_complete) in enumerate(turns):
        ids = [f"toolu_{turn}_{number}" for number in range(calls)]
        history.append(HumanMessage(f"turn {turn}"))
        history += [answer("", *ids, origin=origin), *map(result, ids)] if ids else []
        history += [answer("Done.")] if is_complete else []
    before = [message.model_copy(deep=True) for message in history]
    sent = make_chat_history(history, HERE, splits_calls=splits)
    assert history == before
    # As Mistral's templates count: calls and results are no turn of anybody's.
    speakers = [
        message.type
        for message in sent
        if isinstance(message, HumanMessage)
        or (isinstance(message, AIMessage) and not message.tool_calls)
    ]
    assert all(first != second for first, second in pairwise(speakers))
    assert speakers[:1] in ([], ["human"])
    answers = [each for each in sent if isinstance(each, AIMessage)]
    ids = [str(call["id"]) for each in answers for call in each.tool_calls]
    assert len(ids) == len({*ids}) == sum(calls for calls, *_ in turns)
    answered = [each.tool_call_id for each in sent if isinstance(each, ToolMessage)]
    assert answered == ids
    # What has been sent once is sent alike again.
    last = max((n for n, each in enumerate(history) if isinstance(each, HumanMessage)), default=0)
    again = make_chat_history(history[:last], HERE, splits_calls=splits)
    assert again[:-1] == sent[: len(again)][:-1]
    assert not splits or all(len(each.tool_calls) < 2 for each in answers)
