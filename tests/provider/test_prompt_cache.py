"""What of the input comes from a cache, and what is bound to the history before it."""

from typing import Any

import pytest

from tests.provider import anthropic_messages
from tests.provider.digests import tokens
from tests.provider.prompt_cache import Input, PromptCache
from tests.provider.test_tools_that_change import ANSWER, EDIT, READ, SWITCH
from tests.provider.test_wire import USER

Json = dict[str, Any]

MARK: Json = {"cache_control": {"type": "ephemeral"}}
LONG = "word " * 600  # 750 tokens


def said(text: str = LONG, **more: Any) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def body_of(*messages: Json, **more: Any) -> Json:
    """A request for Anthropic with its mark at the top."""
    whole: Json = {"model": "claude-opus-5", "tools": [READ, EDIT], "system": "s", **MARK, **more}
    return {**whole, "messages": list(messages)}


def reads(*bodies: Json, key: str = "k") -> list[bool]:
    """Of each request, whether it reads something."""
    cache = PromptCache()
    return [cache.anthropic(key, body).read > 0 for body in bodies]


FIRST = body_of(said())


def test_a_history_that_grows_is_read_and_its_end_is_written() -> None:
    cache = PromptCache()
    one, two, three = (
        cache.anthropic("k", body_of(*messages))
        for messages in (
            [said()],
            [said(), ANSWER, said("more")],
            [said(), ANSWER, said("more"), SWITCH, ANSWER, said("and")],
        )
    )
    assert (one.plain, one.read) == (0, 0)
    assert (two.plain, two.read) == (0, one.written)
    assert (three.plain, three.read, two.read + two.written) == (0, two.total, three.read)
    assert three.written > tokens(EDIT), "a deferred tool is read where it is added"
    cache.clear()
    assert cache.anthropic("k", FIRST) == one


@pytest.mark.parametrize(
    ("second", "is_read"),
    [
        (body_of(said(), ANSWER, said("more")), True),
        (body_of(said(), ANSWER, said("more"), tools=[READ]), True),
        (body_of(said(), tools=[READ, {**READ, "name": "new", "defer_loading": True}]), True),
        (body_of(said(), tools=[READ, {**READ, "name": "new"}]), False),
        (body_of(said(), system="other"), False),
        (body_of(said(), tool_choice={"type": "none"}), False),
        (body_of(said(), thinking={"type": "adaptive"}), False),
        (body_of(said(), model="claude-opus-5-5"), False),
        (body_of(said(), *[ANSWER, said("x")] * 9, ANSWER), True),
        (body_of(said(), *[ANSWER, said("x")] * 10), False),
        ({**body_of(said(**MARK), *[ANSWER, said("x")] * 10)}, True),
    ],
)
def test_what_anthropic_reads_again(second: Json, is_read: bool) -> None:
    assert reads(FIRST, second) == [False, is_read]


def test_what_anthropic_does_not_keep() -> None:
    unmarked = {key: value for key, value in FIRST.items() if key != "cache_control"}
    assert reads(unmarked, FIRST) == [False, False], "nothing is kept that is not marked"
    assert reads(body_of(said("short")), body_of(said("short"))) == [False, False]
    assert reads(*[{**FIRST, "model": "claude-sonnet-5"}] * 2) == [False, False], "1,024 at least"
    cache = PromptCache()
    assert [cache.anthropic(key, FIRST).read > 0 for key in "aba"] == [False, False, True]


def test_marks_and_how_long_they_hold() -> None:
    hour: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = body_of(said(**hour), ANSWER, said("more"))
    given = PromptCache().anthropic("k", body)
    assert 0 < given.for_an_hour < given.written
    headers = {"anthropic-version": "2023-06-01"}
    assert anthropic_messages.problem(headers, {**body, "max_tokens": 9}) is None
    for wrong, text in (
        (body_of(*[said(**MARK)] * 4), "A maximum of 4 blocks"),
        (body_of(said(**MARK), said(**hour)), "must not come after"),
    ):
        found = anthropic_messages.problem(headers, {**wrong, "max_tokens": 9})
        assert text in str(found)


def test_openai_reads_the_longest_prefix() -> None:
    long = {"role": "user", "content": LONG * 3}

    def body(*items: Json, **more: Any) -> Json:
        return {"model": "gpt-5.6", "input": list(items), "prompt_cache_key": "t", **more}

    cache = PromptCache()
    one = cache.openai("k", body(long))
    two = cache.openai("k", body(long, ANSWER, USER, tool_choice="none"))
    assert (one.read, one.written, one.plain) == (0, one.total, 0)
    assert (two.read % 128, one.total - two.read < 128, two.plain) == (0, True, 0)
    assert cache.openai("k", body(USER, long)).read == 0, "from the start only"
    assert cache.openai("k", body(long, prompt_cache_key="other")).read == 0
    assert cache.openai("k", body(long, tools=[READ])).read == 0
    assert cache.openai("k", body(long, model="gpt-4.1")) == Input(plain=one.total)
    assert cache.openai("k", body(long, model="gpt-4.1")).read > 1024
    assert cache.openai("k", body(said(LONG[:9]))).read == 0
