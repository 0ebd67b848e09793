"""The scripted provider speaks as the services do: answers fit the clients' own types."""

import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.provider import anthropic_messages, openai_chat, openai_responses
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, Call, Ids

Json = dict[str, Any]
NOT_IN_TYPES = {"obfuscation", "store", "reasoning_content"}
"""What the services send, and some of the clients' types do not have."""
TYPES: dict[ModuleType, tuple[Any, Any]] = {
    openai_chat: (ChatCompletion, ChatCompletionChunk),
    openai_responses: (Response, ResponseStreamEvent),
    anthropic_messages: (Message, RawMessageStreamEvent),
}
"""Of an answer in one piece, and of an event."""
ANSWERS = [
    Answer("Let me see.", (Call("read", {"path": "a"}), Call("list"))),
    Answer("", (Call("list"),), thinking="Hm."),
    Answer(refusal="No."),
    Answer("Once upon", is_truncated=True),
    Answer(thinking="Hm, let me see", is_truncated=True),
]

GIVEN = Input(plain=7, read=1024, written=100, for_an_hour=10)


def events(sent: list[str]) -> Iterator[Json]:
    """The events of a stream that say something."""
    for event in sent:
        fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
        if fields["data"] != "[DONE]":
            data = json.loads(fields["data"])
            assert data.get("type") == fields.get("event")
            if data.get("type") != "ping":
                yield data


def unknown_fields(value: Any) -> set[str]:
    """What the client's type does not have, at any depth."""
    if isinstance(value, list):
        return set[str]().union(*map(unknown_fields, value))
    if not isinstance(value, BaseModel):
        return set()
    deeper = [unknown_fields(one) for _, one in value]
    return set(value.model_extra or ()).union(*deeper)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("wire", TYPES, ids=lambda wire: wire.PATH)
def test_answers_have_the_types_of_the_clients(wire: Any, answer: Answer) -> None:
    include = ["reasoning.encrypted_content"]
    body: Json = {"model": "m", "input": [], "messages": [], "include": include}
    if wire is openai_chat:
        body["stream_options"] = {"include_usage": True}
    whole, event = map(TypeAdapter, TYPES[wire])
    found = [whole.validate_python(wire.as_json(answer, body, Ids(), GIVEN))]
    found += map(event.validate_python, events(wire.as_events(answer, body, Ids(), GIVEN)))
    for one in found:
        assert unknown_fields(one) <= NOT_IN_TYPES


@pytest.mark.parametrize("answer", ANSWERS)
def test_openai_responses_streams_what_it_sends_in_one_piece(answer: Answer) -> None:
    body = {"model": "gpt-5.6", "input": [], "include": ["reasoning.encrypted_content"]}
    whole = openai_responses.as_json(answer, body, Ids(), GIVEN)
    assert Response.model_validate(whole).output_text == answer.text
    streamed = list(events(openai_responses.as_events(answer, body, Ids(), GIVEN)))
    assert [one["sequence_number"] for one in streamed] == [*range(len(streamed))]
    assert streamed[-1]["response"] == whole
    done = [one["item"] for one in streamed if one["type"] == "response.output_item.done"]
    assert done == whole["output"]


def anthropic_problem(*messages: Json, **body: Any) -> str | None:
    whole = {"model": "m", "max_tokens": 9, "messages": list(messages), **body}
    return anthropic_messages.problem({"anthropic-version": "2023-06-01"}, whole)


def openai_problem(*messages: Json, **body: Any) -> str | None:
    return openai_chat.problem({}, {"model": "m", "messages": list(messages), **body})


def responses_problem(*items: Json, **body: Any) -> str | None:
    whole = {"model": "gpt-5.6", "input": list(items), "store": False, **body}
    return openai_responses.problem({}, whole)


USER = {"role": "user", "content": "hello"}


def openai_calls(*ids: str, name: str = "read") -> Json:
    function = {"name": name, "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def anthropic_calls(*ids: str, **more: Any) -> Json:
    block = {"type": "tool_use", "name": "read", "input": {}, **more}
    return {"role": "assistant", "content": [{**block, "id": id} for id in ids]}


def openai_result(id: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "x"}


def anthropic_results(*ids: str) -> Json:
    results = [{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in ids]
    return {"role": "user", "content": results}


ASKED = {"type": "message", "role": "user", "content": "hello"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB0"}
TEXT = {"type": "output_text", "text": "So.", "annotations": []}
SAID = {"type": "message", "role": "assistant", "content": [TEXT]}


def called(id: str, **more: Any) -> Json:
    return {"type": "function_call", "call_id": id, "name": "read", "arguments": "{}", **more}


def returned(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "x"}


@pytest.mark.parametrize(
    ("problem", "messages", "text"),
    [
        *(
            (openai_problem, *row)
            for row in (
                ([USER], None),
                ([USER, openai_calls("a", "b"), openai_result("b"), openai_result("a")], None),
                ([USER, openai_calls("a")], "without an answer"),
                ([USER, openai_calls("a"), USER], "did not: a"),
                ([USER, openai_result("a")], "preceeding message"),
                ([USER, openai_calls("a", "a"), openai_result("a")], "Duplicate"),
                ([USER, openai_calls("a", name="read it"), openai_result("a")], "'read it'"),
                ([USER, openai_calls("a" * 41), openai_result("a" * 41)], "maximum length 40"),
                ([USER, {"role": "assistant", "content": None}], "expected a string"),
                ([{**USER, "index": 1}], "Additional properties"),
                ([{**USER, "content": [{"type": "tool_use"}]}], "'tool_use'"),
            )
        ),
        *(
            (anthropic_problem, *row)
            for row in (
                ([USER], None),
                ([USER, anthropic_calls("a", "b"), anthropic_results("b", "a")], None),
                ([USER, USER], None),
                ([USER, anthropic_calls("a"), USER], "without `tool_result`"),
                ([USER, anthropic_calls("a"), anthropic_results("a", "a")], "unexpected"),
                ([USER, anthropic_calls("a", "a"), anthropic_results("a")], "unique"),
                ([USER, anthropic_calls("a.b"), anthropic_results("a.b")], "pattern"),
                ([USER, anthropic_calls("a", index=1), anthropic_results("a")], "index: Extra"),
                ([USER, anthropic_calls("a", input="{"), anthropic_results("a")], "dictionary"),
                ([USER, {"role": "assistant", "content": "so"}], "prefill"),
                ([{"role": "assistant", "content": "so"}, USER], "first message"),
                ([{"role": "user", "content": " \n"}], "non-whitespace"),
                ([{"role": "user", "content": []}], "non-empty"),
                ([{"role": "user", "content": [{"type": "image_url"}]}], "image_url"),
            )
        ),
        *(
            (responses_problem, *row)
            for row in (
                ([ASKED, THOUGHT, called("a"), called("b"), returned("b"), returned("a")], None),
                ([ASKED, THOUGHT, THOUGHT, SAID, ASKED], None),
                ([ASKED, called("a")], "No tool output found for function call a."),
                ([ASKED, called("a"), returned("a"), returned("a")], "No tool call found"),
                ([ASKED, called("a"), called("a"), returned("a")], "Duplicate"),
                ([ASKED, called("a" * 65), returned("a" * 65)], "maximum length 64"),
                ([ASKED, called("a", name="read it"), returned("a")], "'read it'"),
                ([ASKED, called("a", arguments={}), returned("a")], "expected a string"),
                ([ASKED, called("a", index=1), returned("a")], "'input[1].index'"),
                ([ASKED, THOUGHT, ASKED], "without its required following item"),
                ([ASKED, {**THOUGHT, "encrypted_content": None}, SAID], "'rs_1' not found"),
                ([ASKED, {**THOUGHT, "encrypted_content": "x"}, SAID], "could not be verified"),
                ([ASKED, {**SAID, "id": "msg_1"}], "'msg_1' not found"),
                ([{**ASKED, "content": [{"type": "text", "text": "a"}]}], "'text'"),
                ([{"type": "tool_use"}], "'tool_use'"),
            )
        ),
    ],
)
def test_histories_that_a_service_refuses(
    problem: Callable[..., str | None], messages: list[Json], text: str | None
) -> None:
    found = problem(*messages)
    assert found is None if text is None else text in str(found)


def test_models_and_what_they_are_not_asked() -> None:
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    for name in ("gpt-5.6", "gpt-5.6-terra", "gpt-5.6-luna"):
        assert "use /v1/responses" in str(openai_problem(USER, tools=[tool], model=name))
        assert openai_problem(USER, model=name) is None
    include = ["reasoning.encrypted_content"]
    assert responses_problem(ASKED, include=include) is None
    assert "not supported" in str(responses_problem(ASKED, include=include, model="gpt-4.1"))
    assert "to a reasoning" in str(responses_problem(ASKED, THOUGHT, SAID, model="gpt-4.1"))
    assert "stores nothing" in str(responses_problem(ASKED, store=True))
    assert "'messages'" in str(responses_problem(ASKED, messages=[]))


def test_tools_that_are_refused() -> None:
    schema = {"type": "object", "properties": {}}
    function = {"name": "read", "description": "x" * 1025, "parameters": schema}
    assert "1024" in str(openai_problem(USER, tools=[{"type": "function", "function": function}]))
    tool = {"name": "read it", "input_schema": schema}
    assert "pattern" in str(anthropic_problem(USER, tools=[tool]))
    assert "unique" in str(anthropic_problem(USER, tools=[tool, tool]))
