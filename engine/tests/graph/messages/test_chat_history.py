"""Histories for Chat Completions, as every chat template takes them; ``tests/local`` asks these."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from modeshift.messages.instructions import CLOSED, ORIGIN, make_chat_history

HERE = "http://127.0.0.1:8080/v1 local"


def answer(text: str, *ids: str, origin: str = "") -> AIMessage:
    calls = [ToolCall(name="read_file", args={}, id=id, type="tool_call") for id in ids]
    beside = {ORIGIN: {origin: True}} if origin else {}
    return AIMessage(text, tool_calls=calls, additional_kwargs=beside)


def result(id: str) -> ToolMessage:
    return ToolMessage("old", tool_call_id=id)


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


@pytest.mark.parametrize(
    ("history", "sent"),
    [
        pytest.param(
            [HumanMessage("hello"), HumanMessage("again")], ["human hello\n\nagain"], id="failed"
        ),
        pytest.param(
            [HumanMessage("go"), answer("", "callnumb1"), result("callnumb1"), HumanMessage("on")],
            ["human go", "ai callnumb1", "tool callnumb1 old", f"ai {CLOSED}", "human on"],
            id="completed",
        ),
        pytest.param(
            [HumanMessage("go"), answer("A."), answer("B.", "callnumb1"), result("callnumb1")],
            ["human go", "ai callnumb1 A.\n\nB.", "tool callnumb1 old"],
            id="two answers",
        ),
    ],
)
def test_what_is_one_and_what_is_closed(history: list[AnyMessage], sent: list[str]) -> None:
    assert describe(make_chat_history(history, HERE)) == sent


def test_an_image_stays_when_messages_are_one() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    history: list[AnyMessage] = [HumanMessage([image]), HumanMessage("what is it?")]
    (sent,) = make_chat_history(history, HERE)
    assert sent.content == [image, {"type": "text", "text": "what is it?"}]


@pytest.mark.parametrize(
    ("id", "origin", "stays"),
    [
        ("toolu_01A09q90qw90lq917835lq9", "", False),
        ("call_KcyBFLBcAWUXBcJvhXl92UTW", "https://other/v1 gpt", False),
        ("call_KcyBFLBcAWUXBcJvhXl92UTW", HERE, True),
        ("functions.read_file:0", HERE, True),  # Kimi's, which its model reads
        ("H88IWr1HwJaoYZnhDB5W6ZT1ddicnBeF", HERE, False),  # llama.cpp's
        ("call_" + 32 * "0", HERE, False),  # ours
        ("aB3456789", "", True),
    ],
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


def test_several_calls_are_split_for_those_who_take_one() -> None:
    both = answer("Both.", "callnumb1", "callnumb2", origin=HERE)
    results = [result("callnumb2"), result("callnumb1")]
    history: list[AnyMessage] = [HumanMessage("go"), both, *results, answer("Done.")]
    assert len(make_chat_history(history, HERE)) == len(history)
    sent = make_chat_history(history, HERE, splits_calls=True)
    assert describe(sent) == [
        "human go",
        "ai callnumb2 Both.",
        "tool callnumb2 old",
        "ai callnumb1",
        "tool callnumb1 old",
        "ai Done.",
    ]


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
