"""OpenAI's ``tool_choice``, in both of its formats: which tools the model may call."""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

ALLOWED = "allowed_tools"
WORDS = ("none", "auto", "required")


def problems(body: Json) -> Iterator[str]:
    """Why the service would refuse the choice."""
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not body.get("tools"):
        yield "'tool_choice' is only allowed when 'tools' are specified."
    elif isinstance(choice, str):
        if choice not in WORDS:
            yield f"Invalid value: '{choice}'. Supported values are: {WORDS}."
    elif choice.get("type") not in (ALLOWED, "function"):
        yield f"Invalid value: {choice.get('type')!r} for 'tool_choice.type'."
    else:
        yield from _named_problems(body, choice)


def _named_problems(body: Json, choice: Json) -> Iterator[str]:
    is_chat = "messages" in body
    if choice["type"] == ALLOWED:
        expected = {"type", ALLOWED} if is_chat else {"type", "mode", "tools"}
        if set(choice) != expected:
            yield f"Invalid 'tool_choice': expected {sorted(expected)}."
            return
        inner = choice[ALLOWED] if is_chat else choice
        if inner.get("mode") not in ("auto", "required"):
            yield f"Invalid value: {inner.get('mode')!r} for 'tool_choice.mode'."
        if not inner.get("tools"):
            yield "Invalid 'tool_choice.tools': empty array."
    declared = {name_of(tool, is_chat=is_chat) for tool in body["tools"]}
    for name in _chosen(choice, is_chat=is_chat):
        if name not in declared:
            yield f"Tool choice '{name}' not found in 'tools' parameter."


def _chosen(choice: Json, *, is_chat: bool) -> list[str | None]:
    if choice["type"] != ALLOWED:
        return [name_of(choice, is_chat=is_chat)]
    inner = choice[ALLOWED] if is_chat else choice
    return [name_of(tool, is_chat=is_chat) for tool in inner.get("tools") or ()]


def name_of(tool: Json, *, is_chat: bool) -> str | None:
    """Of a tool or of one that is named; None if it has the shape of the other format."""
    function = tool.get("function") if is_chat else tool
    return function.get("name") if isinstance(function, dict) else None


def offered(body: Json) -> set[str | None]:
    """The names of the tools that the model may call."""
    is_chat = "messages" in body
    choice = body.get("tool_choice")
    if choice == "none":
        return set()
    if isinstance(choice, dict):
        return set(_chosen(choice, is_chat=is_chat))
    return {name_of(tool, is_chat=is_chat) for tool in body.get("tools") or ()}
