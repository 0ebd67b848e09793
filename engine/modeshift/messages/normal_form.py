"""``accept_messages``: a client's messages, checked, in a form that every provider accepts.

A message that a provider refuses would stay in the history, and every later request would fail.
"""

import json
import re
from base64 import b64decode
from collections.abc import Collection, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    RemoveMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_messages
from langgraph.types import Overwrite

from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_data import JsonObject
from modeshift.tools.toolbox import BROKEN, find_unserializable

AnyCall = ToolCall | InvalidToolCall
Block = str | JsonObject
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
        problem = find_unserializable(call["args"])
        args = {BROKEN: f"its arguments hold {problem}"} if problem else call["args"]
        cleaned = ToolCall(name=_clean_name(call["name"]), args=args, id=id, type="tool_call")
        came.append((call["id"], cleaned))
    calls = [call for _, call in came]
    content = _clean_content(message.content, came)
    if calls == message.tool_calls and content == message.content:
        return message
    update: dict[str, object] = {"tool_calls": calls, "invalid_tool_calls": [], "content": content}
    if message.response_metadata.get("output_version") == "v1":
        # These blocks are LangChain's own, which its clients do not send back as such.
        metadata = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
        update |= {"content": clean_text(message.text), "response_metadata": metadata}
    return message.model_copy(update=update)


def _renumber(id: str, seen: Collection[str | None]) -> str:
    """Another id; a number at its end is counted up, as Kimi's models read their numbers."""
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


def list_blocks(content: Content) -> list[Block]:
    """The blocks of a message; of plain text, one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


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
        elif match := next((pair for pair in left if pair[0] == block.get("call_id")), None):
            left.remove(match)
            placed.append(_build_call_block(block, match[1]))
    while placed and not left and _type_of(placed[-1]) == "reasoning":
        placed.pop()
    return placed


def _build_call_block(block: JsonObject, call: ToolCall) -> JsonObject:
    """The call; its arguments stay as they were written, if they are still the same.

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
    """Whether the block is text alone, with nothing that its provider wants back."""
    if isinstance(block, str):
        return True
    return block.get("type") == "text" and not any(map(block.get, _WANTED_BACK))


def _clean_block(block: Block) -> Block:
    if isinstance(block, str):  # Mistral's; no provider takes it back as such
        block = {"type": "text", "text": block}
    return {
        key: _join_halves(part) if isinstance(part, str) else part for key, part in block.items()
    }


def accept_messages(value: object) -> list[AnyMessage]:
    """The user's and the assistant's messages; results of tools are dropped.

    A chat UI that lets the user type while an approval waits sends a made-up result along;
    ``intake`` supplies the true one. Raises ``InvalidInputError`` for any other message.
    """
    accepted: list[AnyMessage] = []
    for message in _convert(value):
        if isinstance(message, HumanMessage):
            accepted.append(_user_message(message))
        elif isinstance(message, AIMessage):
            accepted.append(_assistant_message(message))
        elif not isinstance(message, ToolMessage):
            raise InvalidInputError(
                f"a run's input takes no {message.type!r} message; send role 'user'"
            )
    return accepted


def check_history(messages: object) -> None:
    """Raise ``InvalidInputError`` for messages that a host may not write into a history.

    Allowed are those that ``check_kept`` accepts, and ``RemoveMessage``.
    """
    match messages:
        case Overwrite(value=value) | {"__overwrite__": value}:
            messages = [] if value is None else value
    for message in _convert(messages):
        if not isinstance(message, RemoveMessage):
            check_kept(message)


def check_kept(message: BaseMessage) -> None:
    """Raise ``InvalidInputError`` for a message that providers refuse in a history."""
    if isinstance(message, HumanMessage):
        _user_message(message)
    elif not isinstance(message, AIMessage | ToolMessage):
        raise InvalidInputError(f"a thread's history takes no {message.type!r} message")
    elif isinstance(message, AIMessage) and not all(call["id"] for call in message.tool_calls):
        raise InvalidInputError(f"a call without an id in the message {message.id!r}")


def _convert(value: Any) -> list[BaseMessage]:
    try:
        messages = convert_to_messages(value if isinstance(value, list) else [value])
    except (ValueError, TypeError, NotImplementedError, LookupError) as error:
        raise InvalidInputError(
            f"messages {repr(value)[:300]} are not messages: {error}"
        ) from error
    for message in messages:
        if problem := find_unserializable(message.content):
            raise InvalidInputError(f"the message {repr(message.content)[:300]} holds {problem}")
    return messages


def _assistant_message(message: AIMessage) -> AIMessage:
    """The text and the calls alone: a provider accepts thinking, say, only where it wrote it.

    The calls get new ids: the client's may be in the thread already.
    """
    calls = [{**call, "id": None} for call in message.tool_calls]
    unread = [{**call, "id": None} for call in message.invalid_tool_calls]
    return normalize(
        AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread, id=message.id)
    )


_IMAGE = re.compile(r"https?://\S+|data:image/(?:png|jpeg|gif|webp);base64,(?P<data>.+)")


def _user_message(message: HumanMessage) -> HumanMessage:
    """A new message, without fields that a provider may not know."""
    content = message.content
    converted = map(_convert_block, list_blocks(content))
    shown: list[Block] = [block for block in converted if block is not None]
    if not shown:
        raise InvalidInputError("the user's message is empty")
    return HumanMessage(content if isinstance(content, str) else shown, id=message.id)


def _convert_block(block: Block) -> JsonObject | None:
    """A text or image block in the form that every provider takes; None for empty text."""
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text} if text.strip() else None
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image_block(url)
        case {"type": "image", "url": str(url)}:
            return _image_block(url)
        case {"type": "image"}:
            data = block.get("base64", block.get("data"))
            kind = block.get("mime_type", block.get("mimeType"))
            if isinstance(data, str) and isinstance(kind, str):
                return _image_block(f"data:{kind};base64,{data}")
    raise InvalidInputError(
        f"a user's message takes no block {str(block)[:200]!r}; it takes text, and image_url or "
        "image with a url or with base64 and mime_type"
    )


def _image_block(url: str) -> JsonObject:
    match = _IMAGE.fullmatch(url)
    try:
        if match is not None and match["data"] is not None:
            b64decode(match["data"], validate=True)
    except ValueError:
        match = None
    if match is None:
        raise InvalidInputError(
            "an image must be at http(s)://, or data:image/(png|jpeg|gif|webp);base64, "
            f"not {url[:60]!r}"
        )
    return {"type": "image_url", "image_url": {"url": url}}
