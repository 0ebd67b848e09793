"""Anthropic Messages on the wire."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from tests.provider import binding
from tests.provider.script import ERRORS, Answer, Failure, Ids, pieces, words

PATH = "/v1/messages"
ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
BLOCK_KEYS = {
    "text": {"type", "text", "cache_control", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
}


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
    found = ERRORS["anthropic"][failed.kind]
    message = failed.message or found["text"].format(model=body.get("model"))
    error = {**found["error"], "message": message}
    return found["status"], {"type": "error", "error": error, "request_id": ids.new("req_0", 23)}


def asked(body: dict[str, Any]) -> list[BaseMessage]:
    """The history, in LangChain's words, without its calls."""
    found: list[BaseMessage] = []
    for message in body["messages"]:
        blocks = _blocks(message)
        for block in blocks:
            if block["type"] == "tool_result":
                result = _text(block.get("content", ""))
                found.append(ToolMessage(result, tool_call_id=block["tool_use_id"]))
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        if message["role"] == "assistant":
            found.append(AIMessage(text))
        elif text:
            found.append(HumanMessage(text))
    return found


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def problem(headers: Mapping[str, str], body: dict[str, Any]) -> str | None:
    """Why the service would refuse the request, or None."""
    if not headers.get("anthropic-version"):
        return "anthropic-version: header is required"
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            return f"{name}: Field required"
    found = [*_tool_problems(body.get("tools", [])), *_history_problems(body["messages"])]
    return found[0] if found else binding.problem(headers, body)


def _tool_problems(tools: list[dict[str, Any]]) -> Iterator[str]:
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for number, tool in enumerate(tools):
        if not NAME.fullmatch(tool["name"]):
            yield f"tools.{number}.custom.name: String should match pattern."
        if tool["input_schema"].get("type") != "object":
            yield f"tools.{number}.custom.input_schema.type: Field required"


def _history_problems(messages: list[dict[str, Any]]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
    if messages[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill."
    due: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if message["role"] not in ("user", "assistant"):
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        blocks = _blocks(message)
        if not blocks:
            yield f"{where}: all messages must have non-empty content"
        yield from _block_problems(where, blocks, seen)
        yield from _result_problems(where, blocks, due)
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]


def _block_problems(where: str, blocks: list[dict[str, Any]], seen: set[str]) -> Iterator[str]:
    for block in blocks:
        known = BLOCK_KEYS.get(block["type"])
        if known is None:
            yield f"{where}.content: Input tag {block['type']!r} does not match the expected tags"
        elif unknown := set(block) - known:
            yield f"{where}.content.{sorted(unknown)[0]}: Extra inputs are not permitted"
        if block["type"] == "text" and not block["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"
        if block["type"] != "tool_use":
            continue
        if not ID.fullmatch(block["id"]):
            yield f"{where}.content.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not NAME.fullmatch(block["name"]):
            yield f"{where}.content.tool_use.name: String should match pattern, {block['name']!r}"
        if not isinstance(block["input"], dict):
            yield f"{where}.content.tool_use.input: Input should be a valid dictionary"
        if block["id"] in seen:
            yield f"{where}: `tool_use` ids must be unique"
        seen.add(block["id"])


def _result_problems(where: str, blocks: list[dict[str, Any]], due: list[str]) -> Iterator[str]:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for id in due:
        if id not in results:
            yield (
                f"{where}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {id}."
            )
    for id in results:
        if results.count(id) > due.count(id):
            yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        yield f"{where}: `tool_result` blocks must come first"


def as_json(answer: Answer, body: dict[str, Any], ids: Ids) -> dict[str, Any]:
    """The answer in one piece."""
    return {
        **_message(body, ids),
        "content": [*_content(answer, body, ids)],
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
        "usage": _usage(body, _made(answer)),
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
    for one in answer.calls:
        args = {} if isinstance(one.args, str) else one.args
        id = one.id or ids.new("toolu_01", 22)
        caller = {"type": "direct"}
        yield {"type": "tool_use", "id": id, "name": one.name, "input": args, "caller": caller}


def _stop_reason(answer: Answer) -> str:
    if answer.reason is not None:
        return answer.reason
    if answer.is_truncated:
        return "max_tokens"
    if answer.refusal is not None:
        return "refusal"
    return "tool_use" if answer.calls else "end_turn"


def _made(answer: Answer) -> int:
    called = sum(words(one.args) for one in answer.calls)
    return words(answer.text) + words(answer.thinking) + called


def _usage(body: dict[str, Any], made: int) -> dict[str, Any]:
    return {
        "input_tokens": words([message["content"] for message in body["messages"]]),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": made,
        "service_tier": "standard",
        "inference_geo": "global",
    }


def as_events(answer: Answer, body: dict[str, Any], ids: Ids) -> list[str]:
    """The answer as server-sent events."""
    message = {**_message(body, ids), "usage": _usage(body, 1)}
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
    usage = _usage(body, _made(answer))
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
