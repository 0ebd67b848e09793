"""The scripted provider is true on the wire: held against recordings of the real services.

The recordings lie beside the repository where there are any, and are only compared with.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from graph.settings import ROOT
from tests.provider import anthropic_messages, binding, openai_chat, openai_responses
from tests.provider.script import Answer, Call, Ids

RECORDINGS = ROOT.parent / "shared" / "reference" / "cassettes"
SINCE = {"obfuscation", "service_tier", "annotations", "caller", "system_fingerprint"}
"""Fields that the services have added since the oldest of the recordings was made."""

Json = dict[str, Any]


def recorded() -> list[Any]:
    found = []
    for file in sorted(RECORDINGS.glob("*.yaml")):
        for number, one in enumerate(yaml.safe_load(file.read_text())["interactions"]):
            found.append(pytest.param(one, id=f"{file.stem}-{number}"))
    return found or [pytest.param(None, marks=pytest.mark.skip("no recordings here"))]


def body_of(part: Json) -> Any:
    """The body of a request or a response: JSON, or the events of a stream."""
    if "parsed_body" in part:
        return part["parsed_body"]
    text = part["body"]["string"] if isinstance(part["body"], dict) else part["body"]
    return json.loads(text) if text.lstrip().startswith("{") else list(events(text))


def events(text: str) -> Iterator[Any]:
    """The events of a stream: their JSON, or the bare word that ends OpenAI's."""
    for event in text.strip().split("\n\n"):
        fields = {
            name: value for name, _, value in (line.partition(": ") for line in event.split("\n"))
        }
        data: Any = fields["data"] if fields["data"] == "[DONE]" else json.loads(fields["data"])
        if "event" in fields:
            assert data["type"] == fields["event"]
        yield data


def skeleton(value: Any) -> Any:
    """The fields and the types of their values."""
    match value:
        case dict():
            return {key: skeleton(one) for key, one in value.items()}
        case list():
            return [skeleton(one) for one in value]
        case str() if value in CONSTANTS:
            return value
        case _:
            return type(value).__name__


CONSTANTS = {
    *("assistant", "function", "stop", "tool_calls", "chat.completion", "chat.completion.chunk"),
    *("message", "text", "tool_use", "thinking", "end_turn", "direct", "standard", "[DONE]"),
    *("message_start", "content_block_start", "ping", "content_block_delta", "default"),
    *("content_block_stop", "message_delta", "message_stop", "text_delta", "input_json_delta"),
}


def runs(found: list[Any]) -> list[Any]:
    """Without what comes several times in a row: a service cuts its text as it likes."""
    return [one for number, one in enumerate(found) if number == 0 or one != found[number - 1]]


def common(real: Any, ours: Any, *, ordered: bool = True, where: str = "") -> None:
    """Every field of the real one is in ours, in its order; ours has only newer ones beside."""
    if isinstance(real, dict) and isinstance(ours, dict):
        more = set(ours) - set(real)
        assert more <= SINCE, f"{where}: {sorted(more)}"
        shared = [key for key in ours if key in real]
        assert (shared if ordered else sorted(shared)) == list(real), where
        for key, value in real.items():
            common(value, ours[key], ordered=ordered, where=f"{where}.{key}")
    elif isinstance(real, list) and isinstance(ours, list):
        assert len(real) == len(ours), f"{where}: {real} {ours}"
        for number, (one, other) in enumerate(zip(real, ours, strict=True)):
            common(one, other, ordered=ordered, where=f"{where}[{number}]")
    else:
        assert real == ours, where


def openai_answer(body: Any) -> Answer:
    """What a recorded answer says, as a step of a script."""
    if isinstance(body, dict):
        message = body["choices"][0]["message"]
        return Answer(
            message["content"] or "",
            tuple(
                Call(one["function"]["name"], one["function"]["arguments"])
                for one in message.get("tool_calls", ())
            ),
        )
    text, calls = "", list[list[str]]()
    for event in body[:-1]:
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            for one in choice["delta"].get("tool_calls", ()):
                if "id" in one:
                    calls.append([one["function"]["name"], ""])
                calls[one["index"]][1] += one["function"]["arguments"]
    return Answer(text, tuple(Call(name, args) for name, args in calls))


def anthropic_answer(body: Any) -> Answer:
    if isinstance(body, dict):
        content = body["content"]
    else:
        content = []
        for event in body:
            if event["type"] == "content_block_start":
                content.append(dict(event["content_block"], raw=""))
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                content[-1]["raw"] += delta.get("text", delta.get("partial_json", ""))
    texts = [block.get("raw") or block["text"] for block in content if block["type"] == "text"]
    return Answer(
        "".join(texts),
        tuple(
            Call(block["name"], block.get("raw") or block["input"])
            for block in content
            if block["type"] == "tool_use"
        ),
        "".join(block["thinking"] for block in content if block["type"] == "thinking"),
    )


@pytest.mark.parametrize("interaction", recorded())
def test_like_the_real_service(interaction: Json) -> None:
    request = body_of(interaction["request"])
    real = body_of(interaction["response"])
    is_openai = "openai" in interaction["request"]["uri"]
    wire: Any = openai_chat if is_openai else anthropic_messages
    answer = openai_answer(real) if is_openai else anthropic_answer(real)
    assert answer.text or answer.calls
    assert wire.problem({"anthropic-version": "2023-06-01"}, request) is None, "it was accepted"
    if isinstance(real, dict):
        ours = skeleton(wire.as_json(answer, request, Ids()))
        # One kind of recording has sorted the fields.
        common(skeleton(real), ours, ordered="parsed_body" not in interaction["response"])
        return
    streamed = list(events("".join(wire.as_events(answer, request, Ids()))))
    common(runs([*map(skeleton, real)]), runs([*map(skeleton, streamed)]))
    rebuilt = openai_answer(streamed) if is_openai else anthropic_answer(streamed)
    assert rebuilt == answer


EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@pytest.mark.parametrize(
    "answer",
    [
        Answer("Let me see.", (Call("read", {"path": "a"}), Call("list"))),
        Answer(refusal="No."),
        Answer("Once upon", is_truncated=True),
    ],
)
def test_like_the_types_of_openais_client(answer: Answer) -> None:
    """No recording of the Responses API is at hand."""
    body = {"model": "gpt-5.6", "input": [], "include": ["reasoning.encrypted_content"]}
    whole = openai_responses.as_json(answer, body, Ids())
    read = Response.model_validate(whole)
    assert read.output_text == answer.text
    streamed = list(events("".join(openai_responses.as_events(answer, body, Ids()))))
    assert [EVENT.validate_python(one).sequence_number for one in streamed] == [
        *range(len(streamed))
    ]
    done = [one["item"] for one in streamed if one["type"] == "response.output_item.done"]
    assert (
        skeleton(done) == skeleton(streamed[-1]["response"]["output"]) == skeleton(whole["output"])
    )


def openai_problem(*messages: Json, **body: Any) -> str | None:
    return openai_chat.problem({}, {"model": "m", "messages": list(messages), **body})


def anthropic_problem(*messages: Json, **body: Any) -> str | None:
    whole = {"model": "m", "max_tokens": 9, "messages": list(messages), **body}
    return anthropic_messages.problem({"anthropic-version": "2023-06-01"}, whole)


USER = {"role": "user", "content": "hello"}


def openai_calls(*ids: str, name: str = "read") -> Json:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def anthropic_calls(*ids: str, **more: Any) -> Json:
    block = {"type": "tool_use", "name": "read", "input": {}, **more}
    return {"role": "assistant", "content": [{**block, "id": id} for id in ids]}


def openai_result(id: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "x"}


def anthropic_results(*ids: str) -> Json:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in ids],
    }


@pytest.mark.parametrize(
    ("messages", "text"),
    [
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
    ],
)
def test_histories_that_openai_refuses(messages: list[Json], text: str | None) -> None:
    found = openai_problem(*messages)
    assert found is None if text is None else text in str(found)


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([USER], None),
        ([USER, anthropic_calls("a", "b"), anthropic_results("b", "a")], None),
        ([USER, USER], None),
        ([USER, anthropic_calls("a"), USER], "without `tool_result`"),
        ([USER, anthropic_calls("a"), anthropic_results("a", "a")], "unexpected"),
        ([USER, anthropic_results("a")], "unexpected"),
        ([USER, anthropic_calls("a", "a"), anthropic_results("a")], "unique"),
        ([USER, anthropic_calls("a.b"), anthropic_results("a.b")], "pattern"),
        ([USER, anthropic_calls("a", index=1), anthropic_results("a")], "index: Extra inputs"),
        ([USER, anthropic_calls("a", input="{"), anthropic_results("a")], "dictionary"),
        ([USER, {"role": "assistant", "content": "so"}], "prefill"),
        ([{"role": "assistant", "content": "so"}, USER], "first message"),
        ([{"role": "user", "content": " \n"}], "non-whitespace"),
        ([{"role": "user", "content": []}], "non-empty"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "image_url"),
    ],
)
def test_histories_that_anthropic_refuses(messages: list[Json], text: str | None) -> None:
    found = anthropic_problem(*messages)
    assert found is None if text is None else text in str(found)


def responses_problem(*items: Json, model: str = "gpt-5.6", **body: Any) -> str | None:
    return openai_responses.problem(
        {}, {"model": model, "input": list(items), "store": False, **body}
    )


ASKED = {"type": "message", "role": "user", "content": "hello"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB0"}
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "So.", "annotations": []}],
}


def called(id: str, **more: Any) -> Json:
    return {"type": "function_call", "call_id": id, "name": "read", "arguments": "{}", **more}


def returned(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "x"}


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([ASKED], None),
        ([ASKED, THOUGHT, called("a"), called("b"), returned("b"), returned("a")], None),
        ([ASKED, THOUGHT, THOUGHT, SAID, ASKED], None),
        ([ASKED, called("a")], "No tool output found for function call a."),
        ([ASKED, returned("a")], "No tool call found"),
        ([ASKED, called("a"), returned("a"), returned("a")], "No tool call found"),
        ([ASKED, called("a"), called("a"), returned("a")], "Duplicate"),
        ([ASKED, called("a" * 65), returned("a" * 65)], "maximum length 64"),
        ([ASKED, called("a", name="read it"), returned("a")], "'read it'"),
        ([ASKED, called("a", arguments={}), returned("a")], "expected a string"),
        ([ASKED, called("a", index=1), returned("a")], "'input[1].index'"),
        ([ASKED, THOUGHT], "without its required following item"),
        ([ASKED, THOUGHT, ASKED], "without its required following item"),
        ([ASKED, {**THOUGHT, "encrypted_content": None}, SAID], "'rs_1' not found"),
        ([ASKED, {**THOUGHT, "encrypted_content": "x"}, SAID], "could not be verified"),
        ([ASKED, {**SAID, "id": "msg_1"}], "'msg_1' not found"),
        ([{**ASKED, "content": [{"type": "text", "text": "a"}]}], "'text'"),
        ([{"type": "tool_use"}], "'tool_use'"),
    ],
)
def test_histories_that_openai_responses_refuses(items: list[Json], text: str | None) -> None:
    found = responses_problem(*items)
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
        (bound(2, tools=[]), ["messages.5.content.0"]),
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


def test_who_may_say_what_becomes_of_thoughts() -> None:
    body = bound(thinking=DROP)
    without = {"anthropic-version": "2023-06-01"}
    assert "block_binding: Extra inputs" in str(anthropic_messages.problem(without, body))
    older = {**body, "model": "claude-opus-5"}
    assert "Unexpected value(s)" in str(anthropic_messages.problem(HEADERS, older))
    assert anthropic_messages.problem(without, bound(1, model="claude-opus-5", system="o")) is None
