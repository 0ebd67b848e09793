"""Anthropic Messages on the wire."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from tests.provider import binding
from tests.provider.anthropic_input import problem
from tests.provider.binding import dropped, unexpected_beta
from tests.provider.prompt_cache import Input, PromptCache, count_anthropic
from tests.provider.script import ERRORS, Answer, Failure, Ids, pieces, tokens_of
from tests.provider.tool_changes import blocks_of, offered

__all__ = ["dropped", "offered", "problem"]

PATH = "/v1/messages"
CODES = {"has no corresponding tool definition": "tool_reference_unresolved"}
"""What an error says beside its text."""
count, take = count_anthropic, PromptCache.anthropic


def headers(ids: Ids) -> dict[str, str]:
    """What comes with an answer, the like of which must not be in a cassette included."""
    return {
        "request-id": ids.new("req_0", 23),
        "anthropic-organization-id": "00000000-modeshift-organisation",
        "cf-ray": "modeshift-ray",
        "set-cookie": "_cfuvid=modeshift-cookie; path=/; HttpOnly; Secure",
    }


def given_key(headers: Mapping[str, str]) -> str:
    """The key that the client sent, in the header of today's client or of older ones."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return headers.get("x-api-key") or bearer


def failure(failed: Failure, _: str, body: dict[str, Any], ids: Ids) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error."""
    row = ERRORS["anthropic"][failed.kind]
    message = failed.message or row["text"].format(
        model=body.get("model"), tokens=failed.tokens, window=failed.window
    )
    error = {**row["error"], "message": message}
    for text, code in CODES.items():
        if text in message:
            error["details"] = {"error_code": code}
    return row["status"], {"type": "error", "error": error, "request_id": ids.new("req_0", 23)}


def refusal(unknown: str, headers: Mapping[str, str]) -> str:
    """The words for a header's value or a field that is not known."""
    if unknown in headers.get("anthropic-beta", ""):
        return unexpected_beta(unknown)
    return f"{unknown}: Extra inputs are not permitted"


def asked(body: dict[str, Any]) -> list[BaseMessage]:
    """The history, in LangChain's words, without its calls."""
    messages: list[BaseMessage] = []
    for message in body["messages"]:
        blocks = blocks_of(message)
        for block in blocks:
            if block["type"] == "tool_result":
                result = _text(block.get("content", ""))
                messages.append(ToolMessage(result, tool_call_id=block["tool_use_id"]))
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        if message["role"] == "assistant":
            messages.append(AIMessage(text))
        elif text:
            messages.append((SystemMessage if message["role"] == "system" else HumanMessage)(text))
    return messages


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def as_json(answer: Answer, body: dict[str, Any], ids: Ids, tokens: Input) -> dict[str, Any]:
    """The answer in one piece."""
    return {
        **_message(body, ids),
        "content": [*_content(answer, body, ids)],
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": _usage(tokens, tokens_of(answer)),
    }


def _message(body: dict[str, Any], ids: Ids) -> dict[str, Any]:
    return {
        "model": body["model"],
        "id": ids.new("msg_01", 22),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **binding.transformations(body),
    }


def _content(answer: Answer, body: dict[str, Any], ids: Ids) -> Iterator[dict[str, Any]]:
    if answer.thinking:
        signature = binding.signature(body, ids)
        yield {"type": "thinking", "thinking": answer.thinking, "signature": signature}
    if answer.text:
        yield {"type": "text", "text": answer.text}
    for call in answer.calls:
        args = {} if isinstance(call.args, str) else call.args
        id = call.id or ids.new("toolu_01", 22)
        caller = {"type": "direct"}
        yield {"type": "tool_use", "id": id, "name": call.name, "input": args, "caller": caller}


def _stop_reason(answer: Answer) -> str:
    if answer.reason is not None:
        return answer.reason
    if answer.is_truncated:
        return "max_tokens"
    if answer.refusal is not None:
        return "refusal"
    return "tool_use" if answer.calls else "end_turn"


def _usage(tokens: Input, made: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens.plain,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.written,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": made,
        "service_tier": "standard",
        "inference_geo": "global",
    }


def as_events(answer: Answer, body: dict[str, Any], ids: Ids, tokens: Input) -> list[str]:
    """The answer as server-sent events."""
    message = {**_message(body, ids), "usage": _usage(tokens, 1)}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    calls = iter(answer.calls)
    for index, block in enumerate(_content(answer, body, ids)):
        raw = next(calls).args if block["type"] == "tool_use" else ""
        begun, deltas = _begun(block, raw)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        if index == 0:
            events.append({"type": "ping"})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    usage = _usage(tokens, tokens_of(answer))
    for name in ("cache_creation", "service_tier", "inference_geo"):
        del usage[name]
    stop = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": usage})
    events.append({"type": "message_stop"})
    return [_event(event) for event in events]


def _begun(
    block: dict[str, Any], raw: dict[str, Any] | str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The block as it starts, and what is added to it."""
    match block["type"]:
        case "text":
            parts = pieces(block["text"])
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in parts]
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case _:
            text = raw if isinstance(raw, str) else json.dumps(raw) if raw else ""
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(text)]
            ]


def error_event(failed: Failure, body: dict[str, Any], ids: Ids) -> str:
    """An error in the middle of a stream."""
    return _event(failure(failed, "", body, ids)[1])


def _event(event: dict[str, Any]) -> str:
    data = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}\n\n"
