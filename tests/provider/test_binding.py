"""Thinking and reasoning, as they are bound to the history before them."""

from typing import Any

import pytest

from tests.provider import anthropic_messages, binding, openai_responses
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, Ids
from tests.provider.test_prompt_cache import body_of
from tests.provider.test_tools_that_change import ANSWER, EDIT, READ, SWITCH
from tests.provider.test_wire import THOUGHT, USER

Json = dict[str, Any]


def bound(*kept: int, **changed: Any) -> Json:
    """A request with three thinking blocks, of which these are sent back, and what was changed."""
    ids = Ids()
    body: Json = {"model": "claude-opus-5-5", "max_tokens": 9, "system": "s", "messages": [USER]}
    for number in range(3):
        thought = {"type": "thinking", "thinking": "", "signature": binding.signature(body, ids)}
        text = {"type": "text", "text": str(number)}
        answer = {"role": "assistant", "content": [thought, text]}
        body["messages"] = [*body["messages"], answer, USER]
    for number in {0, 1, 2} - {*kept}:
        del body["messages"][2 * number + 1]["content"][0]
    return body | changed


DROP: Json = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
HEADERS = {"anthropic-version": "2023-06-01", "anthropic-beta": binding.BETA}


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        (bound(0, 1, 2), []),
        (bound(1, 2), []),
        (bound(0, 1), []),
        (bound(), []),
        (bound(0, 1, 2, cache_control={"type": "ephemeral"}, max_tokens=8), []),
        (bound(0, 2), ["messages.5.content.0"]),
        (bound(1, 2, system="other"), ["messages.3.content.0", "messages.5.content.0"]),
        (
            bound(2, tools=[{"name": "a", "input_schema": {"type": "object"}}]),
            ["messages.5.content.0"],
        ),
    ],
)
def test_thoughts_that_anthropic_takes_back(body: Json, lost: list[str]) -> None:
    """Or drops, or refuses: as its page on preserved thinking says."""
    refused = anthropic_messages.problem({"anthropic-version": "2023-06-01"}, body)
    assert bool(lost) == ("bound to a different conversation" in str(refused))
    if refused:
        assert refused.startswith(lost[0])
    assert anthropic_messages.problem(HEADERS, {**body, "thinking": DROP}) is None
    told = binding.transformations({**body, "thinking": DROP})["input_transformations"]
    assert [entry["path"] for entry in told] == lost


def test_thoughts_that_were_left_out_do_not_come_back() -> None:
    for left, lost in ((bound(1, 2), ["messages.7.content.0"]), (bound(0, 1, 2), [])):
        thought = {"type": "thinking", "thinking": "", "signature": binding.signature(left, Ids())}
        answer = {"role": "assistant", "content": [thought]}
        whole = bound(0, 1, 2)
        assert binding.mismatched({**whole, "messages": [*whole["messages"], answer]}) == lost


def test_who_may_say_what_becomes_of_thoughts() -> None:
    body = bound(thinking=DROP)
    without = {"anthropic-version": "2023-06-01"}
    assert "block_binding: Extra inputs" in str(anthropic_messages.problem(without, body))
    older = {**body, "model": "claude-opus-5"}
    assert "Unexpected value(s)" in str(anthropic_messages.problem(HEADERS, older))
    assert anthropic_messages.problem(without, bound(1, model="claude-opus-5", system="o")) is None


def test_thinking_stays_valid_through_a_switch_that_is_appended() -> None:
    """Not through one that comes before it; restored thinking is not taken either."""
    ids = Ids()

    def thought(body: Json) -> Json:
        block = {"type": "thinking", "thinking": "", "signature": binding.signature(body, ids)}
        return {"role": "assistant", "content": [block, {"type": "text", "text": "So."}]}

    first = body_of(USER, model="claude-opus-5-5")
    second = {**first, "messages": [USER, thought(first), USER, SWITCH]}
    third = {**second, "messages": [*second["messages"], thought(second), USER]}
    assert binding.mismatched(third) == []
    more = [READ, EDIT, {**EDIT, "name": "more"}]
    assert binding.mismatched({**third, "tools": more}) == [], "nobody refers to it"
    edited = [READ, {**EDIT, "description": "other"}]
    assert binding.mismatched({**third, "tools": edited}) == ["messages.4.content.0"]
    early = [USER, SWITCH, *third["messages"][1:3], *third["messages"][4:]]
    assert binding.mismatched({**third, "messages": early})[0] == "messages.2.content.0"
    without = {**second, "messages": [USER, ANSWER, USER, SWITCH]}
    restored = {**third, "messages": [*second["messages"], thought(without), USER]}
    assert binding.mismatched(restored) == ["messages.4.content.0"]
    forged = {"type": "thinking", "thinking": "", "signature": "forged"}
    body = {**first, "messages": [USER, {"role": "assistant", "content": [forged]}, USER]}
    found = binding.problem({}, {**body, "model": "claude-opus-5"})
    assert found == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_reasoning_that_does_not_fit_is_left_out_by_the_newest_models() -> None:
    def body(model: str, *items: Json) -> Json:
        include = ["reasoning.encrypted_content"]
        return {"model": model, "input": list(items), "store": False, "include": include}

    for model, lost in (("gpt-6.2", True), ("gpt-5.6", False)):
        first = openai_responses.as_json(Answer("So."), body(model, USER), Ids(), Input())
        item = first["output"][0]
        kept, edited = (body(model, one, item, ANSWER, USER) for one in (USER, ANSWER))
        assert openai_responses.dropped(kept) == []
        assert openai_responses.dropped(edited) == ([item["id"]] if lost else [])
        told = openai_responses.as_json(Answer("So."), edited, Ids(), Input())
        entry = {"id": item["id"], "type": "reasoning", "action": "removed"}
        expected = {**entry, "reason": "prefix_mismatch"}
        assert told.get("input_transformations", []) == ([expected] if lost else [])
    foreign = body("gpt-6.2", USER, THOUGHT, ANSWER, USER)
    assert openai_responses.dropped(foreign) == ["rs_1"]
