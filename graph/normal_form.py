"""An answer in the form that the history keeps, and the history in the form that is sent.

Every provider takes both, whoever answered before.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
)

from tools.arguments import BROKEN, misfit

AnyCall = ToolCall | InvalidToolCall
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def normalised(message: AIMessage, taken: Collection[str | None] = ()) -> AIMessage:
    """``message`` with an id of its own for each call: an answer finds its call by it.

    ``taken`` are ids that earlier calls have.

    A call whose arguments are no JSON, or hold what no checkpoint can, becomes one
    that no tool accepts: a provider wants it answered too. Names and ids are what
    every provider takes back. The calls stand in ``tool_calls`` alone: a copy in
    ``content`` would go out as it came, broken or not.
    """
    seen = set(taken)
    calls: list[ToolCall] = []
    unread = [broken(call, no_json(call["args"])) for call in message.invalid_tool_calls]
    for call in (*message.tool_calls, *unread):
        id: str | None = call["id"]
        if not id or id in seen or not is_sound_id(id):
            id = f"call_{uuid4().hex}"
        seen.add(id)
        found = misfit(call["args"])
        args = {BROKEN: f"its arguments hold {found}"} if found else call["args"]
        calls.append(ToolCall(name=_name(call), args=args, id=id, type="tool_call"))
    content = _content(message.content)
    if calls == message.tool_calls and content == message.content:
        return message
    update: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": [], "content": content}
    if message.response_metadata.get("output_version") == "v1":
        # LangChain's own blocks, which its clients read as those of the provider without it.
        kept = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
        update |= {"content": _content(message.text), "response_metadata": kept}
    return message.model_copy(update=update)


def is_sound_id(id: str) -> bool:
    """Whether every provider takes the id of a call back."""
    return _ID.fullmatch(id) is not None


def broken(call: AnyCall, why: str) -> ToolCall:
    """The call with arguments that no tool takes; its answer says why."""
    return ToolCall(name=call["name"] or "", args={BROKEN: why}, id=call["id"], type="tool_call")


def no_json(args: object) -> str:
    """Why a call with these arguments is broken."""
    return f"its arguments are no JSON object: {str(args)[:200]!r}"


def _name(call: ToolCall) -> str:
    """A name that a provider takes back; one that was made anew is that of no tool."""
    name = call["name"]
    return name if _NAME.fullmatch(name) else f"unknown_{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:50]}"


Content = str | list[str | dict[str, Any]]


def _content(content: Content) -> Content:
    """The content without its calls, and as plain text where nothing else is in it.

    Text of nothing but spaces is none: Anthropic refuses it.
    """
    if isinstance(content, str):
        return _paired(content) if content.strip() else ""
    blocks = [
        block for block in content if not (isinstance(block, dict) and block.get("type") in _CALLS)
    ]
    texts = [
        block if isinstance(block, str) else str(block["text"])
        for block in blocks
        if isinstance(block, str) or (block.get("type") == "text" and not block.get("citations"))
    ]
    if len(texts) == len(blocks):
        return _content("".join(texts))
    return [_paired_in(block) for block in blocks]


def _paired(text: str) -> str:
    """``text`` whose characters are whole: two chunks of a stream may hold half of one each."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _paired_in(block: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(block, str):
        return _paired(block)
    return {key: _paired(one) if isinstance(one, str) else one for key, one in block.items()}


_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "input_json_delta"})


def as_sent(messages: Sequence[AnyMessage], provider: str) -> list[AnyMessage]:
    """The history for a model of ``provider``: one that it takes, whoever answered before.

    Anthropic wants the user first. What is no text in an answer, thoughts say, goes back to
    the provider that it came from, and to no other.
    """
    begun = [] if isinstance(messages[0], HumanMessage) else [HumanMessage("(The user is here.)")]
    if not any(type(message.content) is list for message in messages):
        return [*begun, *messages]
    return [*begun, *(_readable(message, provider) for message in messages)]


def _readable(message: AnyMessage, provider: str) -> AnyMessage:
    if (
        isinstance(message, AIMessage)
        and isinstance(message.content, list)
        and message.response_metadata.get("model_provider") != provider
    ):
        return message.model_copy(update={"content": _content(message.text)})
    return message
