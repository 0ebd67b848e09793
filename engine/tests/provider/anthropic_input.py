"""Which requests Anthropic Messages would refuse."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.provider import binding, tool_changes
from tests.provider.digests import MARK
from tests.provider.tool_changes import blocks_of

Json = dict[str, Any]

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MARKS = 4
"""How many marks of the cache there may be."""
BODY_KEYS = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature"),
    *("top_p", "top_k", "stop_sequences", "metadata", "thinking", "service_tier", "output_config"),
    MARK,
}
TOOL_KEYS = {
    *("name", "description", "input_schema", "type", "strict", "defer_loading", "input_examples"),
    *("eager_input_streaming", MARK),
}
BLOCK_KEYS = {
    "text": {"type", "text", "cache_control", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    **{name: {"type", "tool", "cache_control"} for name in tool_changes.CHANGES},
}


def problem(headers: Mapping[str, str], body: Json) -> str | None:
    """Why the service would refuse the request, or None."""
    if not headers.get("anthropic-version"):
        return "anthropic-version: header is required"
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            return f"{name}: Field required"
    if unknown := sorted(set(body) - BODY_KEYS):
        return f"{unknown[0]}: Extra inputs are not permitted"
    problems = [
        *_tool_problems(body.get("tools", [])),
        *_choice_problems(body),
        *_mark_problems(body),
        *tool_changes.problems(headers, body),
        *_history_problems(body["messages"]),
    ]
    return problems[0] if problems else binding.problem(headers, body)


def _tool_problems(tools: list[Json]) -> Iterator[str]:
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for number, tool in enumerate(tools):
        if unknown := sorted(set(tool) - TOOL_KEYS):
            yield f"tools.{number}.custom.{unknown[0]}: Extra inputs are not permitted"
        if not NAME.fullmatch(tool["name"]):
            yield f"tools.{number}.custom.name: String should match pattern."
        if tool["input_schema"].get("type") != "object":
            yield f"tools.{number}.custom.input_schema.type: Field required"


def _choice_problems(body: Json) -> Iterator[str]:
    kind = (body.get("tool_choice") or {}).get("type", "auto")
    if kind not in ("auto", "none") and binding.CHECKED.fullmatch(body["model"]):
        yield f"tool_choice: type '{kind}' is not supported on this model"


def _mark_problems(body: Json) -> Iterator[str]:
    ttls = [mark.get("ttl", "5m") for mark in marks_of([body.get("tools"), body.get("system")])]
    ttls += [mark.get("ttl", "5m") for mark in marks_of(body["messages"])]
    if MARK in body:
        ttls.append(body[MARK].get("ttl", "5m"))
    if len(ttls) > MARKS:
        yield f"A maximum of {MARKS} blocks with cache_control may be provided. Found {len(ttls)}."
    if ttls != sorted(ttls):  # "1h" is before "5m"
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."


def marks_of(value: Any) -> Iterator[Json]:
    """The marks of the cache, in their order, at any depth."""
    if isinstance(value, list):
        for part in value:
            yield from marks_of(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key == MARK:
                yield part
            else:
                yield from marks_of(part)


def _history_problems(messages: list[Json]) -> Iterator[str]:
    if messages[0]["role"] == "assistant":
        yield "messages: first message must use the user role"
    if messages[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill."
    due: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if unknown := sorted(set(message) - {"role", "content"}):
            yield f"{where}.{unknown[0]}: Extra inputs are not permitted"
        if message["role"] not in ("user", "assistant", "system"):
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        blocks = blocks_of(message)
        if not blocks:
            yield f"{where}: all messages must have non-empty content"
        yield from _block_problems(where, blocks, seen)
        yield from _result_problems(where, blocks, due)
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]


def _block_problems(where: str, blocks: list[Json], seen: set[str]) -> Iterator[str]:
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


def _result_problems(where: str, blocks: list[Json], due: list[str]) -> Iterator[str]:
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
