"""What is bound to the history before it, and what of the input comes from a cache."""

from typing import Any

import pytest

from tests.provider import anthropic_messages, binding, openai_responses
from tests.provider.prompt_cache import Input, PromptCache
from tests.provider.script import Answer, Ids
from tests.provider.test_refusals import (
    ANSWER,
    EDIT,
    MARK,
    READ,
    SWITCH,
    THOUGHT,
    USER,
    claude,
    responses,
)

Json = dict[str, Any]
DROP: Json = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BETA = binding.BETA
LONG = "word " * 600  # 750 tokens


def think(body: Json, ids: Ids) -> Json:
    """An answer to the request, with a thinking block."""
    block = {"type": "thinking", "thinking": "", "signature": binding.signature(body, ids)}
    return {"role": "assistant", "content": [block, {"type": "text", "text": "So."}]}


def bound(*kept: int, **changed: Any) -> Json:
    """A request with three thinking blocks, of which these are sent back, and what was changed."""
    ids, body = Ids(), claude(USER, model="claude-opus-5-5")[2]
    for _ in range(3):
        body["messages"] = [*body["messages"], think(body, ids), USER]
    for number in {0, 1, 2} - {*kept}:
        del body["messages"][2 * number + 1]["content"][0]
    return body | changed


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        (bound(0, 1, 2), ""),
        (bound(1, 2), ""),
        (bound(0, 1), ""),
        (bound(), ""),
        (bound(0, 1, 2, **MARK, max_tokens=8), ""),
        (bound(0, 1, 2, tools=[READ, {**EDIT, "name": "unreferred"}]), ""),
        (bound(0, 2), "5"),
        (bound(1, 2, system="other"), "35"),
        (bound(2, tools=[READ, EDIT, {**READ, "name": "a"}]), "5"),
    ],
)
def test_thoughts_that_anthropic_takes_back(body: Json, lost: str) -> None:
    """Or drops, or refuses: as its page on preserved thinking says."""
    headers = {"anthropic-version": "2023-06-01"}
    paths = [f"messages.{number}.content.0" for number in lost]
    refused = anthropic_messages.problem(headers, body) or ""
    assert bool(lost) == ("bound to a different conversation" in refused)
    assert refused.startswith(paths[0] if lost else "")
    dropping = {**body, "thinking": DROP}
    assert "block_binding: Extra" in str(anthropic_messages.problem(headers, dropping))
    headers["anthropic-beta"] = BETA
    assert anthropic_messages.problem(headers, dropping) is None
    told = binding.transformations(dropping)["input_transformations"]
    assert [entry["path"] for entry in told] == paths
    older = {**body, "model": "claude-opus-5"}
    assert anthropic_messages.problem({**headers, "anthropic-beta": ""}, older) is None
    assert "Unexpected value(s)" in str(anthropic_messages.problem(headers, older))


def test_thoughts_that_were_left_out_do_not_come_back() -> None:
    for left, lost in ((bound(1, 2), ["messages.7.content.0"]), (bound(0, 1, 2), [])):
        whole = bound(0, 1, 2)
        messages = [*whole["messages"], think(left, Ids())]
        assert binding.mismatched({**whole, "messages": messages}) == lost


def test_thinking_stays_valid_through_a_switch_that_is_appended() -> None:
    """Not through one that comes before it, nor if a tool that it added is another one."""
    ids, first = Ids(), claude(USER, model="claude-opus-5-5")[2]
    second = {**first, "messages": [USER, think(first, ids), USER, SWITCH]}
    third = {**second, "messages": [*second["messages"], think(second, ids), USER]}
    assert binding.mismatched(third) == []
    edited = [READ, {**EDIT, "description": "other"}]
    assert binding.mismatched({**third, "tools": edited}) == ["messages.4.content.0"]
    early = [USER, SWITCH, *third["messages"][1:3], *third["messages"][4:]]
    assert binding.mismatched({**third, "messages": early})[0] == "messages.2.content.0"
    forged = {"type": "thinking", "thinking": "", "signature": "forged"}
    given = claude(USER, {"role": "assistant", "content": [forged]}, USER)[2]
    assert "Invalid `signature`" in str(binding.problem({}, given)), "also by a model that is older"


@pytest.mark.parametrize(("model", "is_lost"), [("gpt-6.2", True), ("gpt-5.6", False)])
def test_reasoning_that_does_not_fit_is_left_out_by_the_newest_models(
    model: str, *, is_lost: bool
) -> None:
    def body(*items: Json) -> Json:
        return responses(*items, model=model, include=["reasoning.encrypted_content"])[2]

    item = openai_responses.as_json(Answer("So."), body(USER), Ids(), Input())["output"][0]
    assert openai_responses.dropped(body(USER, item, ANSWER, USER)) == []
    edited = body(ANSWER, item, ANSWER, USER)
    assert openai_responses.dropped(edited) == [item["id"]] * is_lost
    told = openai_responses.as_json(Answer("So."), edited, Ids(), Input())
    assert [entry["id"] for entry in told.get("input_transformations", [])] == [
        item["id"]
    ] * is_lost
    assert openai_responses.dropped(body(USER, THOUGHT, ANSWER, USER)) == ["rs_1"] * is_lost


def said(text: str = LONG, **more: Any) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def body_of(*messages: Json, **more: Any) -> Json:
    """A request for Anthropic with its mark at the top."""
    return claude(*messages, **{"system": "s", **MARK, **more})[2]


UNMARKED = {key: value for key, value in body_of(said()).items() if key not in MARK}


@pytest.mark.parametrize(
    ("first", "second", "is_read"),
    [
        *(
            (body_of(said()), *row)
            for row in (
                (body_of(said(), ANSWER, said("more")), True),
                (body_of(said(), ANSWER, said("more"), tools=[READ]), True),
                (body_of(said(), tools=[READ, {**EDIT, "name": "new"}]), True),
                (body_of(said(), tools=[READ, {**READ, "name": "new"}]), False),
                (body_of(said(), system="other"), False),
                (body_of(said(), tool_choice={"type": "none"}), False),
                (body_of(said(), thinking={"type": "adaptive"}), False),
                (body_of(said(), model="claude-opus-5-5"), False),
                (body_of(said(), *[ANSWER, said("x")] * 9, ANSWER), True),
                (body_of(said(), *[ANSWER, said("x")] * 10), False),
                (body_of(said(**MARK), *[ANSWER, said("x")] * 10), True),
            )
        ),
        (UNMARKED, body_of(said()), False),
        (body_of(said("short")), body_of(said("short")), False),
        (*[body_of(said(), model="claude-sonnet-5")] * 2, False),
    ],
)
def test_what_anthropic_reads_again(first: Json, second: Json, is_read: bool) -> None:
    cache = PromptCache()
    before, after = cache.anthropic("k", first), cache.anthropic("k", second)
    assert (before.read, after.read) == (0, before.written if is_read else 0)
    assert cache.anthropic("another", first).read == 0


def test_openai_reads_the_longest_prefix() -> None:
    long = {"role": "user", "content": LONG * 3}

    def body(*items: Json, **more: Any) -> Json:
        return {"model": "gpt-5.6", "input": list(items), "prompt_cache_key": "t", **more}

    cache = PromptCache()
    before = cache.openai("k", body(long))
    after = cache.openai("k", body(long, ANSWER, USER, tool_choice="none"))
    assert (before.read, before.written, before.plain) == (0, before.total, 0)
    assert (after.read % 128, before.total - after.read < 128, after.plain) == (0, True, 0)
    for other in (
        body(USER, long),
        body(long, prompt_cache_key="other"),
        body(long, tools=[READ]),
        body(said(LONG[:9])),
    ):
        assert cache.openai("k", other).read == 0
    assert cache.openai("k", body(long, model="gpt-4.1")) == Input(plain=before.total)
    assert cache.openai("k", body(long, model="gpt-4.1")).read > 1024
