"""Which requests OpenAI Responses would refuse."""

from collections.abc import Iterator
from typing import Any

from tests.provider import allowed_tools
from tests.provider.chat_input import NAME
from tests.provider.reasoning import ENCRYPTED

Json = dict[str, Any]

BODY_KEYS = {
    *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "include"),
    *("store", "stream", "stream_options", "max_output_tokens", "temperature", "top_p", "text"),
    *("reasoning", "metadata", "user", "service_tier", "truncation", "prompt_cache_key"),
    *("prompt_cache_options", "prompt_cache_retention", "safety_identifier"),
}
ITEM_KEYS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
}
PARTS = {
    "assistant": {"output_text", "refusal"},
    **{
        role: {"input_text", "input_image", "input_file"}
        for role in ("system", "developer", "user")
    },
}


def reasons(model: str) -> bool:
    """Whether it is a model that thinks before it answers."""
    return not model.startswith(("gpt-3", "gpt-4", "chatgpt")) and "-chat" not in model


def problem(_: Any, body: Json) -> str | None:
    """Why the service would refuse the request, or None."""
    if unknown := sorted(set(body) - BODY_KEYS):
        return f"Unknown parameter: '{unknown[0]}'."
    if not body.get("model") or not body.get("input"):
        return "Missing required parameter."
    if body.get("store") is not False:
        return "this provider stores nothing, and wants to hear that nothing is to be stored"
    if body.get("include") and not reasons(body["model"]):
        return "Encrypted content is not supported with this model."
    problems = [
        *_tool_problems(body.get("tools", [])),
        *allowed_tools.problems(body),
        *_input_problems(body["input"], body["model"]),
    ]
    return problems[0] if problems else None


def _tool_problems(tools: list[Json]) -> Iterator[str]:
    for number, tool in enumerate(tools):
        if unknown := sorted(set(tool) - {"type", "name", "description", "parameters", "strict"}):
            yield f"Unknown parameter: 'tools[{number}].{unknown[0]}'."
        if not NAME.fullmatch(tool.get("name", "")):
            yield f"Invalid 'tools[{number}].name': string does not match pattern."
        elif tool["parameters"].get("type") != "object":
            yield f"Invalid schema for function {tool['name']!r}: schema must be an object."


def _input_problems(items: list[Json], model: str) -> Iterator[str]:
    due: list[str] = []
    called: set[str] = set()
    for number, item in enumerate(items):
        where = f"input[{number}]"
        kind = item.get("type", "message")
        if kind not in ITEM_KEYS:
            yield f"Invalid value: '{kind}'. Supported values are: {sorted(ITEM_KEYS)}."
            continue
        if unknown := sorted(set(item) - ITEM_KEYS[kind]):
            yield f"Unknown parameter: '{where}.{unknown[0]}'."
        match kind:
            case "message":
                yield from _message_problems(where, item)
            case "reasoning":
                yield from _reasoning_problems(item, items[number + 1 :], model)
            case "function_call":
                yield from _call_problems(where, item, called)
                called.add(item["call_id"])
                due.append(item["call_id"])
            case "function_call_output" if item["call_id"] in due:
                due.remove(item["call_id"])
            case "function_call_output":
                call_id = item["call_id"]
                yield f"No tool call found for function call output with call_id {call_id}."
    for call_id in due:
        yield f"No tool output found for function call {call_id}."


def _message_problems(where: str, item: Json) -> Iterator[str]:
    if item.get("role") not in PARTS:
        yield f"Invalid value: {item.get('role')!r}."
        return
    if "id" in item:
        yield _not_found(item["id"])
    content = item["content"]
    if content is None:
        yield f"Invalid type for '{where}.content': expected a string or an array, got null."
    for part in content if isinstance(content, list) else ():
        if part["type"] not in PARTS[item["role"]]:
            yield f"Invalid value: '{part['type']}'. {sorted(PARTS[item['role']])} are supported."


def _reasoning_problems(item: Json, following: list[Json], model: str) -> Iterator[str]:
    if not reasons(model):
        yield (
            "Reasoning input items can only be provided to a reasoning or computer use model. "
            "Remove reasoning items from your input and try again."
        )
    if not item.get("encrypted_content"):
        yield _not_found(item.get("id"))
    elif not item["encrypted_content"].startswith(ENCRYPTED):
        yield f"The encrypted content for item {item.get('id')} could not be verified."
    after = next((item for item in following if item.get("type") != "reasoning"), {})
    if after.get("type") != "function_call" and after.get("role") != "assistant":
        yield (
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
            "following item."
        )


def _not_found(id: str | None) -> str:
    return (
        f"Item with id '{id}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input."
    )


def _call_problems(where: str, item: Json, called: set[str]) -> Iterator[str]:
    if not 0 < len(item["call_id"]) <= 64:
        yield f"Invalid '{where}.call_id': string too long. Expected maximum length 64."
    if item["call_id"] in called:
        yield f"Duplicate function call with call_id {item['call_id']}."
    if not NAME.fullmatch(item["name"]):
        yield f"Invalid '{where}.name': {item['name']!r} does not match pattern."
    if not isinstance(item["arguments"], str):
        yield f"Invalid type for '{where}.arguments': expected a string."
