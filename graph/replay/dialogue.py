"""What is said in a provider's request: who said and called what, with which tools at hand.

Read from any of the wire formats, without the system prompt and without what tools found.
"""

import json
from collections.abc import Iterator
from typing import Any

COMMANDS = "execute_command"
Said = tuple[str, str]
"""Who, and what: ``user``, ``assistant``, ``call`` or ``result``."""


def read_dialogue(body: Any) -> tuple[frozenset[str], list[Said]]:
    """The names of the tools, and what was said; nothing for what is no such request.

    Without the tool for commands: where there is a sandbox, modes have it that only look.
    """
    if not isinstance(body, dict):
        return frozenset(), []
    names = (str(tool.get("function", tool).get("name")) for tool in body.get("tools") or ())
    tools = frozenset(names) - {COMMANDS}
    messages = body.get("messages") or body.get("input") or ()
    return tools, [said for message in messages for said in _said(message)]


def by_user(body: Any) -> list[str]:
    """The user's messages."""
    return [text for who, text in read_dialogue(body)[1] if who == "user"]


def _said(message: dict[str, Any]) -> Iterator[Said]:
    role = message.get("role")
    if role in ("system", "developer") or message.get("type") == "reasoning":
        return
    if role == "tool" or message.get("type") == "function_call_output":
        yield "result", ""
        return
    if message.get("type") == "function_call":
        yield "call", _call(message["name"], json.loads(message["arguments"] or "{}"))
        return
    for block in _blocks(message.get("content")):
        match block.get("type"):
            case "text" | "input_text" | "output_text" if block.get("text"):
                yield str(role), str(block["text"])
            case "tool_use":
                yield "call", _call(block["name"], block["input"])
            case "tool_result":
                yield "result", ""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield "call", _call(function["name"], json.loads(function["arguments"] or "{}"))


def _blocks(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _call(name: str, args: Any) -> str:
    return f"{name}({json.dumps(args, sort_keys=True)})"
