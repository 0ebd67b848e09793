"""The dialogue in a provider's request: who said what, which calls were made, with which tools.

Reads all the wire formats. Leaves out the system prompt and the tools' results, which may
differ between a recording and its replay.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from graph.messages.instructions import remove_instructions

COMMANDS = "execute_command"
SWITCH = "switch_mode"
Line = tuple[str, str]
"""The kind (``user``, ``assistant``, ``call`` or ``result``) and the text."""


def read_dialogue(body: Any) -> tuple[frozenset[str], list[Line]]:
    """The names of the offered tools and the lines so far; both empty for any other body.

    The command tool is left out: with a sandbox, modes that only look have it too.
    """
    if not isinstance(body, dict):
        return frozenset(), []
    messages = body.get("messages") or body.get("input") or ()
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    lines = [line for message in messages for line in _read_message(message)]
    return frozenset(_list_tools(body, messages)) - {COMMANDS}, lines


def _list_tools(body: dict[str, Any], messages: Iterable[dict[str, Any]]) -> set[str]:
    """The names of the tools that the model may call; see ``mode_changes``."""
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return set(map(_get_name, choice.get("allowed_tools", choice)["tools"]))
    shown = {_get_name(tool) for tool in body.get("tools") or () if not tool.get("defer_loading")}
    for message in messages:
        content = message.get("content")
        for block in (
            content if isinstance(content, list) and message.get("role") == "system" else ()
        ):
            if block.get("type") == "tool_addition":
                shown.add(block["tool"]["name"])
            elif block.get("type") == "tool_removal":
                shown.discard(block["tool"]["name"])
    return shown


def _get_name(tool: dict[str, Any]) -> str:
    return str(tool.get("function", tool).get("name"))


def is_of_modes(tools: frozenset[str]) -> bool:
    """Whether the tools were offered by an agent that works in modes, such as this one."""
    return SWITCH in tools


def list_user_messages(bodies: Iterable[Any]) -> list[str]:
    """What the user said in a conversation, in order, given its request bodies."""
    lines = (line for body in bodies for line in read_dialogue(body)[1])
    return list(dict.fromkeys(text for kind, text in lines if kind == "user"))


def _read_message(message: dict[str, Any]) -> Iterator[Line]:
    role = message.get("role")
    if role in ("system", "developer") or message.get("type") == "reasoning":
        return
    if role == "tool" or message.get("type") == "function_call_output":
        yield "result", ""
        return
    if message.get("type") == "function_call":
        yield "call", _format_call(message["name"], message["arguments"])
        return
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    for block in blocks:
        match block.get("type"):
            case "text" | "input_text" | "output_text" if block.get("text"):
                if text := remove_instructions(str(block["text"])).strip():
                    yield str(role), text
            case "tool_use":
                yield "call", _format_call(block["name"], block["input"])
            case "tool_result":
                yield "result", ""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield "call", _format_call(function["name"], function["arguments"])


def _format_call(name: str, args: Any) -> str:
    if isinstance(args, str):
        with suppress(ValueError):  # a model's JSON may be broken
            args = json.loads(args or "{}")
    return f"{name}({json.dumps(args, sort_keys=True)})"
