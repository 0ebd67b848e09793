"""Which requests OpenAI Chat Completions would refuse."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.provider import allowed_tools

PATH = "/v1/chat/completions"
ONLY_RESPONSES = re.compile(r"gpt-5\.6(-|$)")
"""Models that take no tools here."""
FIRST_ONLY = re.compile(r"(qwen|gemma)")
"""Models of other servers: their templates take one system message, and their servers no
``allowed_tools``."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call"}
)

PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


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
    problems = [
        *_tool_problems(body.get("tools", [])),
        *allowed_tools.problems(body),
        *_history_problems(body["messages"]),
    ]
    if FIRST_ONLY.match(body["model"]):
        problems += _template_problems(body)
    return problems[0] if problems else None


def _template_problems(body: dict[str, Any]) -> Iterator[str]:
    if any(message["role"] in ("system", "developer") for message in body["messages"][1:]):
        yield "System message must be at the beginning."
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] != "function":
        yield f"tool_choice.type: Input should be 'function', got {choice['type']!r}"


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
        due = [call["id"] for call in calls]
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
    ids = [call["id"] for call in calls]
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
