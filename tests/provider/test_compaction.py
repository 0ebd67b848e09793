"""Anthropic's compaction on demand, with the real client at it."""

from typing import Any

import pytest
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import SecretStr, TypeAdapter

from tests.provider import anthropic_messages, binding
from tests.provider.compaction import BETA
from tests.provider.script import Answer, Ids, say
from tests.provider.server import KEY, serving
from tests.provider.test_tools_that_change import READ, SYSTEM
from tests.provider.test_wire import GIVEN, USER, anthropic_calls, events

Json = dict[str, Any]

ANSWER: Json = {"role": "assistant", "content": [{"type": "text", "text": "So."}]}
SUMMARIZE: Json = {"compaction": {"type": "summarize"}}


def body_of(*messages: Json, **more: Any) -> Json:
    whole = {"model": "claude-opus-5-5", "max_tokens": 9, "system": "s", **more}
    return {**whole, "messages": list(messages)}


def problem(body: Json, betas: str = BETA) -> str | None:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": betas}
    return anthropic_messages.problem(headers, body)


def thinking_of(body: Json) -> Json:
    """The answer to ``body``, with thinking."""
    sent = anthropic_messages.as_json(Answer("So.", thinking="Hm."), body, Ids(), GIVEN)
    return {"role": "assistant", "content": sent["content"]}


def compacted(*messages: Json, **more: Any) -> Json:
    """The block that stands for these."""
    body = body_of(*messages, **SUMMARIZE, **more)
    assert problem(body) is None
    sent = anthropic_messages.as_json(say("A summary."), body, Ids(), GIVEN)
    assert BetaMessage.model_validate(sent).stop_reason == "compaction"
    assert sent["usage"]["iterations"][0]["cache_read_input_tokens"] == GIVEN.read
    streamed = events(anthropic_messages.as_events(say("A summary."), body, Ids(), GIVEN))
    event: TypeAdapter[Any] = TypeAdapter(BetaRawMessageStreamEvent)
    kinds = [event.validate_python(one).type for one in streamed]
    assert kinds[1:3] == ["content_block_start", "content_block_stop"], "whole"
    return {"role": "assistant", "content": sent["content"]}


def test_thinking_that_is_kept_behind_a_summary_stays_valid() -> None:
    """As long as it follows at once, and is under the same prompt and tools."""
    first = [USER, thinking_of(body_of(USER)), USER]
    kept = [thinking_of(body_of(*first)), USER]
    block = compacted(*first)
    for messages, more, lost in (
        ([block, *kept], {}, False),
        ([block, USER], {}, False),
        ([block, *kept], {"system": "other"}, True),
        ([block, *kept], {"tools": [READ]}, True),
        ([block, USER, *kept], {}, True),
        ([block, *first, *kept], {}, True),
        ([compacted(USER), *kept], {}, True),
        ([compacted(USER), USER, thinking_of(body_of(USER, USER)), USER], {}, True),
        ([compacted(USER, ANSWER, USER), *kept], {}, False),
        ([compacted(USER, ANSWER, USER, system="other"), *kept], {}, True),
        ([compacted(*first, *kept[:1]), *kept], {}, True),
    ):
        body = body_of(*messages, **more)
        assert bool(binding.mismatched(body)) is lost
        assert ("different conversation" in str(problem(body))) is lost
    later = [block, *kept]
    again = compacted(*later)
    assert binding.mismatched(body_of(again, thinking_of(body_of(*later)), USER)) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (body_of(USER, ANSWER, **SUMMARIZE), None),
        (body_of(USER, anthropic_calls("a"), **SUMMARIZE), "tool call with no result"),
        (body_of(USER, stop_sequences=["x"], **SUMMARIZE), "cannot be combined"),
        (body_of(USER, **SUMMARIZE, model="claude-haiku-4-5"), "compaction: Extra inputs"),
        (body_of(USER, compacted(USER), USER), "must be first in messages"),
        (body_of(compacted(USER), SYSTEM), "role 'system' must follow"),
        (body_of({**ANSWER, "content": [{"type": "compaction", "content": "x"}]}, USER), "`sign"),
    ],
)
def test_what_may_be_compacted(body: Json, text: str | None) -> None:
    found = problem(body)
    assert found is None if text is None else text in str(found)
    assert "compaction" in str(problem(body, betas=""))


async def test_a_client_compacts_and_goes_on() -> None:
    """LangChain sends the block back as it came."""
    mark: Json = {"betas": [BETA], "cache_control": {"type": "ephemeral"}}
    with serving([say("One."), say("A summary."), say("Two.")]) as provider:
        model = ChatAnthropic(
            model="claude-opus-5-5", api_key=SecretStr(KEY), base_url=provider.url
        )
        prompt = SystemMessage("word " * 500)
        history: list[BaseMessage] = [HumanMessage("word " * 2000)]
        history.append(await model.ainvoke([prompt, *history], **mark))
        done: AIMessage = await model.ainvoke([prompt, *history], **mark, **SUMMARIZE)
        assert done.response_metadata["stop_reason"] == "compaction"
        answer = await model.ainvoke([prompt, done, HumanMessage("go on")], **mark)
        assert (answer.text, provider.refused, provider.dropped) == ("Two.", [], [])
    one, two, three = provider.inputs
    assert (two.read, three.read, three.total < one.total) == (one.total, 0, True)
