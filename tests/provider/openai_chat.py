"""OpenAI Chat Completions on the wire."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from tests.provider.script import ERRORS, Answer, Call, Failure, Ids, pieces, words

PATH = "/v1/chat/completions"
CREATED = 1_767_225_600
ONLY_RESPONSES = re.compile(r"gpt-5\.6(-|$)")
"""Models that take no tools here."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call"}
)

PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def headers(ids: Ids) -> dict[str, str]:
    """What comes with an answer, the like of which must not be in a cassette included."""
    return {
        "openai-organization": "user-modeshift-organisation",
        "openai-project": "proj_modeshift",
        "x-request-id": ids.new("req_", 32),
        "set-cookie": "__cf_bm=modeshift-cookie; path=/; HttpOnly; Secure",
    }


def given_key(headers: Mapping[str, str]) -> str:
    """The key that the client sent."""
    return headers.get("authorization", "").removeprefix("Bearer ")


def failure(
    failed: Failure, key: str, body: dict[str, Any], _: Ids, wire: str = "openai"
) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error."""
    found = ERRORS[wire][failed.kind]
    message = failed.message or found["text"].format(key=key, model=body.get("model"))
    return found["status"], {"error": {"message": message, **found["error"]}}


def asked(body: dict[str, Any]) -> list[BaseMessage]:
    """The history, in LangChain's words."""
    return [_message(message) for message in body["messages"]]


def _message(message: dict[str, Any]) -> BaseMessage:
    (converted,) = convert_to_messages([{**message, "content": message.get("content") or ""}])
    return converted


def problem(headers: Mapping[str, str], body: dict[str, Any]) -> str | None:
    """Why the service would refuse the request, or None."""
    if not body.get("model"):
        return "you must provide a model parameter"
    if not body.get("messages"):
        return "Invalid 'messages': empty array. Expected an array with minimum length 1."
    if body.get("tools") and ONLY_RESPONSES.match(body["model"]):
        return (
            f"Function tools with reasoning_effort are not supported for {body['model']} in "
            f"{PATH}. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
    found = [*_tool_problems(body.get("tools", [])), *_history_problems(body["messages"])]
    return found[0] if found else None


def _tool_problems(tools: list[dict[str, Any]]) -> Iterator[str]:
    for number, tool in enumerate(tools):
        function = tool["function"]
        where = f"'tools[{number}].function"
        if not NAME.fullmatch(function["name"]):
            yield f"Invalid {where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
        if len(function.get("description", "")) > 1024:
            yield f"Invalid {where}.description': string too long, maximum length 1024."
        if function["parameters"].get("type") != "object":
            yield f"Invalid schema for function {function['name']!r}: schema must be an object."


def _history_problems(messages: list[dict[str, Any]]) -> Iterator[str]:
    due: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role = message["role"]
        if unknown := set(message) - MESSAGE_KEYS:
            yield f"Additional properties are not allowed in '{where}': {sorted(unknown)}"
        if role == "tool":
            if message["tool_call_id"] not in due:
                yield (
                    f"Invalid parameter: '{where}' with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            else:
                due.remove(message["tool_call_id"])
            continue
        if due:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages "
                f"responding to each 'tool_call_id'. These did not: {', '.join(due)}"
            )
        yield from _content_problems(message)
        calls = message.get("tool_calls") or []
        if not calls and message.get("content") is None:
            yield f"Invalid value for 'content' of '{where}': expected a string, got null."
        due = [one["id"] for one in calls]
        yield from _call_problems(where, calls)
    if due:
        yield f"tool calls without an answer at the end: {', '.join(due)}"


def _content_problems(message: dict[str, Any]) -> Iterator[str]:
    if message["role"] not in ("system", "developer", "user", "assistant"):
        yield f"Invalid value: {message['role']!r}."
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if part["type"] not in PARTS:
            yield f"Invalid value: {part['type']!r}. Supported values are: {sorted(PARTS)}."


def _call_problems(where: str, calls: list[dict[str, Any]]) -> Iterator[str]:
    ids = [one["id"] for one in calls]
    if len(set(ids)) < len(ids):
        yield f"Duplicate value for 'tool_call_id' in '{where}'."
    for one in calls:
        if not one["id"] or len(one["id"]) > 40:
            yield f"Invalid '{where}.tool_calls.id': {one['id']!r}, maximum length 40."
        name = one["function"]["name"]
        if not NAME.fullmatch(name):
            yield f"Invalid '{where}.tool_calls.function.name': {name!r} does not match pattern."
        if not isinstance(one["function"]["arguments"], str):
            yield f"Invalid type for '{where}.tool_calls.function.arguments': expected a string."


def as_json(answer: Answer, body: dict[str, Any], ids: Ids) -> dict[str, Any]:
    """The answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking  # as DeepSeek and vLLM send it
    if answer.calls:
        message["tool_calls"] = [_call(one, ids) for one in answer.calls]
    message |= {"refusal": answer.refusal, "annotations": []}
    if answer.text == "" and not answer.calls and answer.refusal is None:
        message["content"] = ""
    return {
        "id": ids.new("chatcmpl-", 29),
        "object": "chat.completion",
        "created": CREATED,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": _finish_reason(answer),
            }
        ],
        "usage": _usage(answer, body),
        "service_tier": "default",
        "system_fingerprint": "fp_modeshift00",
    }


def _call(one: Call, ids: Ids, *, is_begun: bool = False) -> dict[str, Any]:
    arguments = "" if is_begun else _arguments(one)
    return {
        "id": one.id or ids.new("call_", 24),
        "type": "function",
        "function": {"name": one.name, "arguments": arguments},
    }


def _arguments(one: Call) -> str:
    return one.args if isinstance(one.args, str) else json.dumps(one.args)


def _finish_reason(answer: Answer) -> str:
    if answer.reason is not None:
        return answer.reason
    if answer.is_truncated:
        return "length"
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    given = words([message.get("content") for message in body["messages"]])
    made = words(answer.text) + sum(words(one.args) for one in answer.calls)
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def as_events(answer: Answer, body: dict[str, Any], ids: Ids) -> list[str]:
    """The answer as server-sent events."""
    options = body.get("stream_options") or {}
    with_usage = bool(options.get("include_usage"))
    head = {
        "id": ids.new("chatcmpl-", 29),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_modeshift00",
    }
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
        for delta in _deltas(answer, ids)
    ]
    end = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish_reason(answer)}
    chunks.append({"choices": [end]})
    if with_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({"choices": [], "usage": _usage(answer, body)})
    events: list[str] = []
    for chunk in chunks:
        whole = {**head, **chunk}
        if options.get("include_obfuscation", True):
            whole["obfuscation"] = ids.new("", 1 + len(events) % 12)
        events.append(f"data: {compact(whole)}\n\n")
    return [*events, "data: [DONE]\n\n"]


def _deltas(answer: Answer, ids: Ids) -> Iterator[dict[str, Any]]:
    calls = [_call(one, ids, is_begun=True) for one in answer.calls]
    first: dict[str, Any] = {"role": "assistant", "content": None}
    for piece in pieces(answer.thinking):
        yield {**first, "reasoning_content": piece}
    if answer.text or not calls:
        yield {**first, "content": None if answer.refusal is not None else "", "refusal": None}
    elif len(calls) == 1:
        yield {**first, "tool_calls": [{"index": 0, **calls[0]}], "refusal": None}
    else:
        yield first
    for piece in pieces(answer.text):
        yield {"content": piece}
    for piece in pieces(answer.refusal or ""):
        yield {"refusal": piece}
    for index, (one, begun) in enumerate(zip(answer.calls, calls, strict=True)):
        if answer.text or len(calls) > 1:
            yield {"tool_calls": [{"index": index, **begun}]}
        for piece in pieces(_arguments(one)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def error_event(failed: Failure, body: dict[str, Any], ids: Ids) -> str:
    """An error in the middle of a stream."""
    return f"data: {compact(failure(failed, '', body, ids)[1])}\n\n"


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
