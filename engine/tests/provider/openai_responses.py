"""OpenAI Responses on the wire, where nothing is stored."""

import json
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages

from tests.provider import openai_chat
from tests.provider.allowed_tools import offered
from tests.provider.digests import tokens
from tests.provider.openai_chat import CREATED, compact, count, given_key, headers, refusal, take
from tests.provider.prompt_cache import Input
from tests.provider.reasoning import ENCRYPTED, dropped, encrypt, transformations
from tests.provider.responses_input import problem, reasons
from tests.provider.script import ERRORS, Answer, Call, Failure, Ids, pieces, tokens_of

__all__ = ["count", "dropped", "given_key", "headers", "offered", "problem", "refusal", "take"]

Json = dict[str, Any]

PATH = "/v1/responses"


def failure(failed: Failure, key: str, body: Json, ids: Ids) -> tuple[int, Json]:
    """The status and the body of an error."""
    is_own = failed.kind in ERRORS["responses"] and not failed.message
    return openai_chat.failure(failed, key, body, ids, "responses" if is_own else "openai")


def asked(body: Json) -> list[BaseMessage]:
    """The history, in LangChain's words, without its calls."""
    messages: list[BaseMessage] = []
    for item in body["input"]:
        if item["type"] == "function_call":
            messages.append(AIMessage(""))
        elif item["type"] == "function_call_output":
            messages.append(ToolMessage(item["output"], tool_call_id=item["call_id"]))
        elif item["type"] == "message":
            content = item["content"]
            texts = content if isinstance(content, list) else [{"text": content}]
            text = "".join(part.get("text", "") for part in texts)
            messages += convert_to_messages([(item["role"], text)])
    return messages


def as_json(answer: Answer, body: Json, ids: Ids, counted: Input) -> Json:
    """The answer in one piece."""
    return _whole(_response(body, ids), answer, counted, list(_output(answer, body, ids)))


def _response(body: Json, ids: Ids) -> Json:
    """The response as it begins. The real one repeats the tools."""
    return {
        "id": ids.new("resp_", 40),
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
        **transformations(body),
    }


def _whole(begun: Json, answer: Answer, counted: Input, output: list[Json]) -> Json:
    """The response as it ends."""
    reason = answer.reason or ("max_output_tokens" if answer.is_truncated else None)
    made = tokens_of(answer)
    cached = {"cached_tokens": counted.read, "cache_write_tokens": counted.written}
    return {
        **begun,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": {
            "input_tokens": counted.total,
            "input_tokens_details": cached,
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": tokens(answer.thinking)},
            "total_tokens": counted.total + made,
        },
    }


def _output(answer: Answer, body: Json, ids: Ids) -> Iterator[Json]:
    """The items of the answer."""
    status = "incomplete" if answer.is_truncated else "completed"
    if reasons(body["model"]):
        told = [{"type": "summary_text", "text": answer.thinking}] if answer.thinking else []
        item: Json = {"id": ids.new("rs_", 40), "type": "reasoning", "summary": told}
        if "reasoning.encrypted_content" in body.get("include", ()):
            item["encrypted_content"] = encrypt(body, ids)
        yield item
    part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
    if answer.refusal is not None:
        part = {"type": "refusal", "refusal": answer.refusal}
    if answer.text or answer.refusal is not None:
        said = {"type": "message", "status": status, "content": [part], "role": "assistant"}
        yield {"id": ids.new("msg_", 40), **said}
    for call in answer.calls:
        yield {
            "id": ids.new("fc_", 40),
            "type": "function_call",
            "status": status,
            "arguments": _arguments(call),
            "call_id": call.id or ids.new("call_", 24),
            "name": call.name,
        }


def _arguments(call: Call) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args, separators=(",", ":"))


def as_events(answer: Answer, body: Json, ids: Ids, counted: Input) -> list[str]:
    """The answer as server-sent events."""
    begun = _response(body, ids)
    output = list(_output(answer, body, ids))
    whole = _whole(begun, answer, counted, output)
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(output):
        first, last = _item_ends(item)
        place = {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": first})
        events += [{**event, "item_id": item["id"], **place} for event in _item_events(item, ids)]
        events.append({"type": "response.output_item.done", **place, "item": last})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [_event(number, event) for number, event in enumerate(events)]


def _item_ends(item: Json) -> tuple[Json, Json]:
    """The item as it is added, and as it is done."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}, item
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}, item
        case _:
            # What comes first of it may not be all, and is no part of the rest.
            is_encrypted = "encrypted_content" in item
            begun = {"encrypted_content": ENCRYPTED} if is_encrypted else {}
            return {**item, "summary": [], **begun}, item


def _item_events(item: Json, ids: Ids) -> Iterator[Json]:
    """What comes between."""
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for number, piece in enumerate(pieces(item["arguments"])):
            padding = ids.new("", 1 + number % 12)
            yield {"type": f"{kind}.delta", "delta": piece, "obfuscation": padding}
        yield {"type": f"{kind}.done", "arguments": item["arguments"]}
    elif item["type"] == "reasoning":
        kind = "response.reasoning_summary"
        for index, part in enumerate(item["summary"]):
            place = {"summary_index": index}
            yield {"type": f"{kind}_part.added", **place, "part": {**part, "text": ""}}
            for number, piece in enumerate(pieces(part["text"])):
                padding = ids.new("", 1 + number % 12)
                delta = {"delta": piece, "obfuscation": padding}
                yield {"type": f"{kind}_text.delta", **place, **delta}
            yield {"type": f"{kind}_text.done", **place, "text": part["text"]}
            yield {"type": f"{kind}_part.done", **place, "part": part}
    elif item["type"] == "message":
        (part,) = item["content"]
        name = "text" if "text" in part else "refusal"
        more: Json = {"logprobs": []} if name == "text" else {}
        kind = f"response.{'output_text' if name == 'text' else name}"
        place = {"content_index": 0}
        yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
        for number, piece in enumerate(pieces(part[name])):
            padding = ids.new("", 1 + number % 12)
            yield {"type": f"{kind}.delta", **place, "delta": piece, **more, "obfuscation": padding}
        yield {"type": f"{kind}.done", **place, name: part[name], **more}
        yield {"type": "response.content_part.done", **place, "part": part}


def error_event(failed: Failure, body: Json, ids: Ids) -> str:
    """An error in the middle of a stream."""
    error = failure(failed, "", body, ids)[1]["error"]
    told = {"code": error["code"] or error["type"], "message": error["message"]}
    response = {**_response(body, ids), "status": "failed", "error": told}
    return _event(3, {"type": "response.failed", "response": response})


def _event(number: int, event: Json) -> str:
    kind = event["type"]
    data = {"type": kind, "sequence_number": number, **event}
    return f"event: {kind}\ndata: {compact(data)}\n\n"
