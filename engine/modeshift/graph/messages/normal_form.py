"""``normalize``: an assistant's message in the form that the history keeps.

Any provider can be sent that form, whoever wrote the message.
"""

import json
import re
from collections.abc import Collection, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from modeshift.tools.calls.arguments import BROKEN, find_unserializable

AnyCall = ToolCall | InvalidToolCall
Block = str | dict[str, Any]
Content = str | list[Block]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[!-~]+")
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "input_json_delta"})
_RESPONSES_CALL = "function_call"


def normalize(message: AIMessage, taken: Collection[str | None] = ()) -> AIMessage:
    """``message`` with calls that can be stored, answered, and sent back to any provider.

    Each call has an id of its own, which is not one of ``taken``. Sound ids stay as they came:
    some servers keep something in them. A call whose arguments are not JSON, or hold what no
    checkpoint can, becomes one that no tool accepts, for providers want it answered too.

    Calls are kept in ``tool_calls``. Only the Responses API needs a copy in ``content``, in its
    place among the reasoning; it is made to agree with the call.
    """
    seen = set(taken)
    unread = [
        mark_broken(call, explain_bad_json(call["args"])) for call in message.invalid_tool_calls
    ]
    came: list[tuple[str | None, ToolCall]] = []
    """The calls, each with the id that it came with."""
    for call in (*message.tool_calls, *unread):
        id: str | None = call["id"]
        if not id or not is_sound_id(id):
            id = f"call_{uuid4().hex}"
        elif id in seen:
            id = _renumber(id, seen)
        seen.add(id)
        found = find_unserializable(call["args"])
        args = {BROKEN: f"its arguments hold {found}"} if found else call["args"]
        kept = ToolCall(name=_clean_name(call["name"]), args=args, id=id, type="tool_call")
        came.append((call["id"], kept))
    calls = [call for _, call in came]
    content = _clean_content(message.content, came)
    if calls == message.tool_calls and content == message.content:
        return message
    update: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": [], "content": content}
    if message.response_metadata.get("output_version") == "v1":
        # These blocks are LangChain's own, which its clients do not send back as such.
        metadata = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
        update |= {"content": clean_text(message.text), "response_metadata": metadata}
    return message.model_copy(update=update)


def _renumber(id: str, seen: Collection[str | None]) -> str:
    """Another id; one that ends in a number gets the next, for Kimi's models read theirs."""
    text, colon, number = id.rpartition(":")
    if not (colon and number.isdecimal()):
        return f"call_{uuid4().hex}"
    return next(new for n in count(int(number) + 1) if (new := f"{text}:{n}") not in seen)


def get_call_id(call: ToolCall) -> str:
    """The id of a call; in normal form each has one."""
    return str(call["id"])


def is_sound_id(id: str) -> bool:
    """Whether the history keeps a call's id as it came."""
    return _ID.fullmatch(id) is not None


def mark_broken(call: AnyCall, why: str) -> ToolCall:
    """The call with arguments that no tool accepts; its result will say why."""
    return ToolCall(name=call["name"] or "", args={BROKEN: why}, id=call["id"], type="tool_call")


def explain_bad_json(args: object) -> str:
    """Why a call with these arguments is broken."""
    return f"its arguments are no JSON object: {str(args)[:200]!r}"


def clean_text(text: str) -> str:
    """``text`` with whole characters; empty if it is only spaces, which Anthropic refuses."""
    return _join_halves(text) if text.strip() else ""


def _join_halves(text: str) -> str:
    """``text`` with whole characters: two chunks of a stream may hold half of one each."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean_name(name: str) -> str:
    """A name that providers take back; one that has to be changed becomes that of no tool."""
    return name if _NAME.fullmatch(name) else f"unknown_{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:50]}"


def _clean_content(content: Content, came: Sequence[tuple[str | None, ToolCall]]) -> Content:
    """The content without its calls; plain text if nothing else is left.

    Otherwise, beside reasoning for instance, the calls of the Responses API stay in place.
    """
    if isinstance(content, str):
        return clean_text(content)
    blocks = [block for block in content if _type_of(block) not in _CALL_BLOCKS]
    others = [block for block in blocks if _type_of(block) != _RESPONSES_CALL]
    if all(map(_is_text, others)):
        texts = [block if isinstance(block, str) else block.get("text", "") for block in others]
        return clean_text("".join(texts))
    return [_clean_block(block) for block in _update_calls(blocks, came)]


def _update_calls(
    blocks: Sequence[Block], came: Sequence[tuple[str | None, ToolCall]]
) -> list[Block]:
    """The blocks with each call of the Responses API as it is now.

    Reasoning must be followed by what came of it, or the request is refused; so reasoning that
    was cut off, with nothing behind it, is left out.
    """
    left = list(came)
    placed: list[Block] = []
    for block in blocks:
        if not isinstance(block, dict) or _type_of(block) != _RESPONSES_CALL:
            placed.append(block)
        elif found := next((one for one in left if one[0] == block.get("call_id")), None):
            left.remove(found)
            placed.append(_build_call_block(block, found[1]))
    while placed and not left and _type_of(placed[-1]) == "reasoning":
        placed.pop()
    return placed


def _build_call_block(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """The call, with its arguments to the letter if they are still the same.

    Without the block's own id: nothing is stored under it.
    """
    arguments = block.get("arguments")
    try:
        is_same = isinstance(arguments, str) and json.loads(arguments) == call["args"]
    except (ValueError, RecursionError):
        is_same = False
    return {
        "type": _RESPONSES_CALL,
        "call_id": call["id"],
        "name": call["name"],
        "arguments": arguments if is_same else json.dumps(call["args"], ensure_ascii=False),
    }


def _type_of(block: Block) -> object:
    return block.get("type") if isinstance(block, dict) else None


_WANTED_BACK = ("citations", "phase", "extras", "signature", "thought_signature")


def _is_text(block: Block) -> bool:
    """Whether it is text, without anything beside it that its provider wants back."""
    if isinstance(block, str):
        return True
    return block.get("type") == "text" and not any(map(block.get, _WANTED_BACK))


def _clean_block(block: Block) -> Block:
    if isinstance(block, str):  # Mistral's; no provider takes it back as such
        block = {"type": "text", "text": block}
    return {key: _join_halves(one) if isinstance(one, str) else one for key, one in block.items()}
