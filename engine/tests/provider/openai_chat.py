"""OpenAI Chat Completions on the wire."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from tests.provider.allowed_tools import offered
from tests.provider.chat_input import PATH, problem
from tests.provider.digests import tokens
from tests.provider.prompt_cache import Input, PromptCache, count_openai
from tests.provider.script import ERRORS, Answer, Call, Failure, Ids, pieces, tokens_of

__all__ = ["PATH", "offered", "problem"]

CREATED = 1_767_225_600
count, take = count_openai, PromptCache.openai


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
    row = ERRORS[wire][failed.kind]
    message = failed.message or row["text"].format(
        key=key, model=body.get("model"), tokens=failed.tokens, window=failed.window
    )
    return row["status"], {"error": {"message": message, **row["error"]}}


def refusal(unknown: str, _: Mapping[str, str]) -> str:
    """The words for a field that is not known."""
    return f"Unknown parameter: '{unknown}'."


def dropped(_: dict[str, Any]) -> list[str]:
    """Nothing: what was reasoned does not come back here."""
    return []


def asked(body: dict[str, Any]) -> list[BaseMessage]:
    """The history, in LangChain's words."""
    return [_message(message) for message in body["messages"]]


def _message(message: dict[str, Any]) -> BaseMessage:
    (converted,) = convert_to_messages([{**message, "content": message.get("content") or ""}])
    return converted


def as_json(answer: Answer, body: dict[str, Any], ids: Ids, counted: Input) -> dict[str, Any]:
    """The answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking  # as DeepSeek and vLLM send it
    if answer.calls:
        message["tool_calls"] = [_call(call, ids) for call in answer.calls]
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
        "usage": _usage(answer, counted),
        "service_tier": "default",
        "system_fingerprint": "fp_modeshift00",
    }


def _call(call: Call, ids: Ids, *, is_begun: bool = False) -> dict[str, Any]:
    arguments = "" if is_begun else _arguments(call)
    return {
        "id": call.id or ids.new("call_", 24),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _arguments(call: Call) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args)


def _finish_reason(answer: Answer) -> str:
    if answer.reason is not None:
        return answer.reason
    if answer.is_truncated:
        return "length"
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer, counted: Input) -> dict[str, Any]:
    made = tokens_of(answer)
    cached = {"cached_tokens": counted.read, "cache_write_tokens": counted.written}
    return {
        "prompt_tokens": counted.total,
        "completion_tokens": made,
        "total_tokens": counted.total + made,
        "prompt_tokens_details": {**cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens(answer.thinking),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def as_events(answer: Answer, body: dict[str, Any], ids: Ids, counted: Input) -> list[str]:
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
        chunks.append({"choices": [], "usage": _usage(answer, counted)})
    events: list[str] = []
    for chunk in chunks:
        whole = {**head, **chunk}
        if options.get("include_obfuscation", True):
            whole["obfuscation"] = ids.new("", 1 + len(events) % 12)
        events.append(f"data: {compact(whole)}\n\n")
    return [*events, "data: [DONE]\n\n"]


def _deltas(answer: Answer, ids: Ids) -> Iterator[dict[str, Any]]:
    calls = [_call(call, ids, is_begun=True) for call in answer.calls]
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
