"""``make_chat_history``: a history that the chat template of every model takes.

A server that speaks Chat Completions makes one text of the messages, by a template that comes with
the model, and many templates refuse what OpenAI's own service takes. Made of the history alone, for
each request: what has been sent once is sent alike again, and the thread stays as it is.
"""

import re
from base64 import b32encode
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from itertools import count

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from modeshift.messages.normal_form import Content, get_call_id, list_blocks

CLOSED = "(The turn ended here.)"
ORIGIN = "reasoning_from"
"""The key in an answer's ``additional_kwargs`` that names its server and model.

A key of a mapping there, because LangChain joins texts.
"""
_SHORT = re.compile(r"[a-zA-Z0-9]{9}")
"""The ids of calls that Mistral's templates take, and all others."""
_RANDOM = re.compile(r"(?:call_|chatcmpl-tool-)?[a-zA-Z0-9]{32}")
"""Ids that say nothing: llama.cpp's and vLLM's, and what ``normalize`` gives."""


def make_chat_history(
    messages: Sequence[AnyMessage], origin: str, *, splits_calls: bool = False
) -> list[AnyMessage]:
    """The history as it is sent to the server and model of ``origin``.

    Messages of the user that follow one another are one, and so are those of the assistant. A
    turn that ended behind a result has a closing word. Ids of calls that come from elsewhere, or
    say nothing, have nine letters. With ``splits_calls``, an answer has one call at most.
    """
    sent: list[AnyMessage] = []
    for message in _shorten_ids(messages, origin):
        last = sent[-1] if sent else None
        if isinstance(message, HumanMessage) and isinstance(last, ToolMessage):
            sent += [AIMessage(CLOSED), message]
        elif last is not None and _are_one(last, message):
            sent[-1] = _join(last, message)
        else:
            sent.append(message)
    return [*_split_calls(sent)] if splits_calls else sent


def _are_one(first: AnyMessage, second: AnyMessage) -> bool:
    if isinstance(first, AIMessage):
        return isinstance(second, AIMessage) and not first.tool_calls
    return isinstance(first, HumanMessage) and isinstance(second, HumanMessage)


def _join(first: AnyMessage, second: AnyMessage) -> AnyMessage:
    """The second message with the words of the first before its own."""
    parts = [message.content for message in (first, second) if message.content]
    content: Content = "\n\n".join(part for part in parts if isinstance(part, str))
    if not all(isinstance(part, str) for part in parts):
        content = [block for part in parts for block in list_blocks(part)]
    return second.model_copy(update={"content": content})


def _shorten_ids(messages: Sequence[AnyMessage], origin: str) -> Iterator[AnyMessage]:
    """The messages with ids that every template takes, one for each call; its own stay."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    for message in messages:
        if isinstance(message, AIMessage) and (calls := message.tool_calls):
            is_own = origin in message.additional_kwargs.get(ORIGIN, ())
            for id in map(get_call_id, calls):
                is_fit = _SHORT.fullmatch(id) or (is_own and not _RANDOM.fullmatch(id))
                ids[id] = id if is_fit and id not in used else _make_id(id, used)
                used.add(ids[id])
            renamed = [ToolCall(**{**call, "id": ids[get_call_id(call)]}) for call in calls]
            is_same = renamed == calls
            yield message if is_same else message.model_copy(update={"tool_calls": renamed})
        elif isinstance(message, ToolMessage) and (new := ids.get(message.tool_call_id)):
            is_same = new == message.tool_call_id
            yield message if is_same else message.model_copy(update={"tool_call_id": new})
        else:
            yield message


def _make_id(id: str, used: Collection[str]) -> str:
    """Nine letters that follow from the id, and are none of those ``used`` before it."""
    digests = (sha256(f"{id}{number or ''}".encode()).digest() for number in count())
    return next(new for each in digests if (new := b32encode(each).decode()[:9]) not in used)


def _split_calls(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """The messages with each call in an answer of its own, before its result."""
    waiting: dict[str, ToolCall] = {}
    answer = AIMessage("")
    for message in messages:
        if isinstance(message, AIMessage) and len(message.tool_calls) > 1:
            waiting = {get_call_id(call): call for call in message.tool_calls}
            answer = message
            continue
        if isinstance(message, ToolMessage) and (call := waiting.pop(message.tool_call_id, None)):
            yield answer.model_copy(update={"tool_calls": [call]})
            answer = AIMessage("")  # the words, and what its server wants back, are with the first
        yield message
