"""An answer in the form that the history keeps, and the history in the form that is sent.

Every provider takes both, whoever answered before.
"""

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)

from graph.messages.call_blocks import Block, Came, is_call, put_calls_in_place
from graph.messages.origin import CHAT_COMPLETIONS, RESPONSES, RESPONSES_UNREASONED, origin_of
from graph.messages.repair import call_id
from tools.arguments import BROKEN, find_unserializable

AnyCall = ToolCall | InvalidToolCall
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[!-~]+")
_IDS = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    RESPONSES: re.compile(r".{1,64}"),
    RESPONSES_UNREASONED: re.compile(r".{1,64}"),
    CHAT_COMPLETIONS: re.compile(r"[a-zA-Z0-9_-]{1,40}"),
}
"""Which ids of other providers' calls a provider takes; any where it is not said."""


def normalize(message: AIMessage, taken: Collection[str | None] = ()) -> AIMessage:
    """``message`` with an id of its own for each call: an answer finds its call by it.

    ``taken`` are ids that earlier calls have.

    A call whose arguments are no JSON, or hold what no checkpoint can, becomes one
    that no tool accepts: a provider wants it answered too. Names are what every provider
    takes back; ids stay as they came, for some servers keep something in them. The calls
    stand in ``tool_calls``; a copy in ``content`` is there only where a provider wants it in
    its place, and says the same: it would go out as it came, broken or not.
    """
    seen = set(taken)
    calls: list[ToolCall] = []
    came: list[str | None] = []
    unread = [
        mark_broken(call, explain_bad_json(call["args"])) for call in message.invalid_tool_calls
    ]
    for call in (*message.tool_calls, *unread):
        id: str | None = call["id"]
        if not id or id in seen or not is_sound_id(id):
            id = f"call_{uuid4().hex}"
        seen.add(id)
        came.append(call["id"])
        found = find_unserializable(call["args"])
        args = {BROKEN: f"its arguments hold {found}"} if found else call["args"]
        calls.append(ToolCall(name=_name(call), args=args, id=id, type="tool_call"))
    content = _content(message.content, list(zip(came, calls, strict=True)))
    if calls == message.tool_calls and content == message.content:
        return message
    update: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": [], "content": content}
    if message.response_metadata.get("output_version") == "v1":
        # LangChain's own blocks, which its clients read as those of the provider without it.
        kept = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
        update |= {"content": _content(message.text), "response_metadata": kept}
    return message.model_copy(update=update)


def is_sound_id(id: str) -> bool:
    """Whether the history keeps the id of a call as it came."""
    return _ID.fullmatch(id) is not None


def mark_broken(call: AnyCall, why: str) -> ToolCall:
    """The call with arguments that no tool takes; its answer says why."""
    return ToolCall(name=call["name"] or "", args={BROKEN: why}, id=call["id"], type="tool_call")


def explain_bad_json(args: object) -> str:
    """Why a call with these arguments is broken."""
    return f"its arguments are no JSON object: {str(args)[:200]!r}"


def _name(call: ToolCall) -> str:
    """A name that a provider takes back; one that was made anew is that of no tool."""
    name = call["name"]
    return name if _NAME.fullmatch(name) else f"unknown_{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:50]}"


Content = str | list[Block]


def _content(content: Content, calls: Sequence[Came] = ()) -> Content:
    """The content without its calls, and as plain text where nothing else is in it.

    Where more is in it, what was reasoned say, those of the Responses API stay in their place.
    Text of nothing but spaces is none: Anthropic refuses it. ``calls`` have the ids that they
    came with.
    """
    if isinstance(content, str):
        return _paired(content) if content.strip() else ""
    blocks = [
        block for block in content if not (isinstance(block, dict) and block.get("type") in _CALLS)
    ]
    others = [block for block in blocks if not is_call(block)]
    texts = [
        block if isinstance(block, str) else block["text"] for block in others if _is_text(block)
    ]
    if len(texts) == len(others):
        return _content("".join(texts))
    return [_paired_in(block) for block in put_calls_in_place(blocks, calls)]


def _is_text(block: Block) -> bool:
    """Whether it is text, and nothing that its provider wants to hear again beside it."""
    if isinstance(block, str):
        return True
    return block.get("type") == "text" and not block.get("citations") and not block.get("phase")


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


def prepare_for_provider(messages: Sequence[AnyMessage], origin: str) -> list[AnyMessage]:
    """The history for a model with answers of ``origin``: one that it takes, whoever answered.

    Anthropic wants the user first. What is no text in an answer, thoughts say, goes back to
    where it came from, and nowhere else; so do ids that are not taken everywhere.
    """
    sent = list(messages)
    taken = _IDS.get(origin)
    renamed: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            may_differ = taken is not None or type(message.content) is list
            if may_differ and origin_of(message) != origin:
                sent[index] = _readable(message, taken, renamed)
        elif renamed and isinstance(message, ToolMessage) and message.tool_call_id in renamed:
            id = renamed[message.tool_call_id]
            sent[index] = message.model_copy(update={"tool_call_id": id})
    if not isinstance(messages[0], HumanMessage):
        sent.insert(0, HumanMessage("(The user is here.)"))
    return sent


def _readable(
    message: AIMessage, taken: re.Pattern[str] | None, renamed: dict[str, str]
) -> AIMessage:
    """An answer for another than who gave it; adds to ``renamed`` the ids that are not taken."""
    update: dict[str, Any] = {}
    if isinstance(message.content, list):
        update["content"] = _content(message.text)
    calls = message.tool_calls
    if taken is not None and (odd := [id for id in map(call_id, calls) if not taken.fullmatch(id)]):
        renamed.update({id: f"call_{sha256(id.encode()).hexdigest()[:32]}" for id in odd})
        update["tool_calls"] = [
            ToolCall(**{**call, "id": renamed.get(call_id(call), call["id"])}) for call in calls
        ]
    return message.model_copy(update=update) if update else message
