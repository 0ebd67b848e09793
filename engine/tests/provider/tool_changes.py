"""System messages in the middle of Anthropic's messages, and tools that they show and hide."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.provider.digests import MARK

Json = dict[str, Any]

BY_REFERENCE = "mid-conversation-tool-changes-2026-07-01"
"""The beta header."""
MODELS = re.compile(
    r"(.*[/.])?claude-((fable|mythos)-5(-1)?|opus-(4-8|5(-5)?)|(sonnet|haiku)-5-5)(-20\d{6})?"
)
"""The models that take them, also under a gateway's names."""
CHANGES = ("tool_addition", "tool_removal")
ANYWHERE = "the directive-only form (content: [] with output_config) is accepted at any position"


def blocks_of(message: Json) -> list[Json]:
    """The content, be it text or blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def problems(headers: Mapping[str, str], body: Json) -> Iterator[str]:
    """Why the service would refuse the system messages and the tools."""
    messages = body["messages"]
    yield from _deferred_problems(body.get("tools") or [])
    for number, message in enumerate(messages):
        if message["role"] == "system":
            if not MODELS.fullmatch(body["model"]):
                yield "role 'system' is not supported on this model"
            yield from _place_problems(number, messages)
            yield from _content_problems(f"messages.{number}", message)
        elif any(block["type"] in CHANGES for block in blocks_of(message)):
            yield f"messages.{number}: tool changes can only be in system messages"
    yield from _change_problems(headers.get("anthropic-beta", "").split(","), body)


def _deferred_problems(tools: list[Json]) -> Iterator[str]:
    if tools and all(tool.get("defer_loading") for tool in tools):
        yield "All tools have defer_loading set. At least one tool must be non-deferred."
    for number, tool in enumerate(tools):
        if tool.get("defer_loading") and MARK in tool:
            yield f"tools.{number}: a tool with defer_loading cannot have cache_control"


def _place_problems(number: int, messages: list[Json]) -> Iterator[str]:
    """Of one system message; several on end are judged as one."""
    before = messages[number - 1] if number else None
    after = messages[number + 1] if number + 1 < len(messages) else None
    where = f"messages.{number}"
    if before is None:
        yield f"{where}: use the top-level 'system' parameter for the initial system prompt"
    elif before["role"] == "assistant":
        yield (
            f"{where}: role 'system' must follow a 'user' message or an 'assistant' message ending "
            f"in a server tool result; {ANYWHERE}"
        )
    elif after is not None and after["role"] == "user":
        yield f"{where}: role 'system' must precede an 'assistant' message or end the array; " + (
            ANYWHERE
        )


def _content_problems(where: str, message: Json) -> Iterator[str]:
    if not message["content"]:
        yield f"{where}: system content must contain at least one block"
    if {block["type"] for block in blocks_of(message)} - {"text", *CHANGES}:
        yield f"{where}: role 'system' supports text, tool_addition, and tool_removal blocks only"


def _change_problems(betas: list[str], body: Json) -> Iterator[str]:
    known = {tool["name"] for tool in body.get("tools") or []}
    for path, block in _changes(body):
        if BY_REFERENCE not in betas:
            yield f"{path}: Input tag '{block['type']}' does not match the expected tags"
        if block["tool"]["name"] not in known:
            name = block["tool"]["name"]
            yield f"{path}: Tool reference '{name}' has no corresponding tool definition"


def _changes(body: Json) -> Iterator[tuple[str, Json]]:
    """The tool changes in their order, each with its path."""
    for number, message in enumerate(body["messages"]):
        if message["role"] == "system":
            for index, block in enumerate(blocks_of(message)):
                if block["type"] in CHANGES:
                    yield f"messages.{number}.content.{index}", block


def offered(body: Json) -> set[str]:
    """The names of the tools that the model sees after the last message, and may call."""
    if (body.get("tool_choice") or {}).get("type") == "none":
        return set()
    names = {tool["name"] for tool in body.get("tools") or [] if not tool.get("defer_loading")}
    for _, block in _changes(body):
        change = names.add if block["type"] == "tool_addition" else names.discard
        change(block["tool"]["name"])
    return names


def with_definitions(body: Json) -> list[list[Json]]:
    """The blocks of each message; behind a first reference to a deferred tool, its definition.

    Until then a deferred tool is no part of what the model reads.
    """
    deferred = {tool["name"]: tool for tool in body.get("tools") or [] if tool.get("defer_loading")}
    messages: list[list[Json]] = []
    for message in body["messages"]:
        messages.append([])
        for block in blocks_of(message):
            name = block["tool"]["name"] if block["type"] in CHANGES else None
            definition = deferred.pop(name, None)
            messages[-1].append(
                block if definition is None else {**block, "definition": definition}
            )
    return messages


def plain_tools(body: Json) -> list[Json]:
    """Those that the model reads from the start."""
    return [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")]
