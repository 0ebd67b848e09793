"""``prepare_for_provider``: the history in a form that a provider takes, whoever answered before.

Each answer is in the form of the API that gave it. That one takes it back as it came; for others,
what only that one can read is left out.
"""

import re
from base64 import b32encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from operator import attrgetter
from typing import Any, NotRequired

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from typing_extensions import TypedDict

from modeshift.messages.normal_form import Content, clean_text, get_call_id, list_blocks

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

    A server that speaks Chat Completions makes one text of it, by a template that comes with the
    model, and many templates refuse what OpenAI's own service takes. What has been sent once is
    sent alike again, and the thread stays as it is.

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


_TAG = "system-message"
_TAGGED = re.compile(rf"\n\n<{_TAG}>\n.*?\n</{_TAG}>", re.DOTALL)


class Instruction(TypedDict):
    """What the model was told at one point of a thread, and what it knows since then."""

    after: str
    """The id of the message that it stands behind."""
    text: str
    mode: str
    tools: list[str]
    """The names of the mode's tools."""
    words: str
    """A digest of the mode's words."""
    environment: str
    """Where the model works, as it was last told."""
    way: NotRequired[str]
    """How changes of mode are told; the thread's first one decides."""


def place(
    instructions: Sequence[Instruction], messages: Sequence[AnyMessage]
) -> tuple[list[Instruction], list[Instruction]]:
    """The first instruction, whose tools each request shows; and those whose message is there."""
    ids = set(map(attrgetter("id"), messages))
    return keep_first(instructions), [note for note in instructions if note["after"] in ids]


def keep_first(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The thread's first instruction, without its place in the history."""
    return [{**note, "after": ""} for note in instructions[:1]]


def insert_instructions(
    messages: Sequence[AnyMessage],
    instructions: Sequence[Instruction],
    build: Callable[[Instruction, Instruction], SystemMessage],
) -> Iterator[AnyMessage]:
    """The history with each instruction as a system message of its own.

    ``build`` makes it, given also the instruction before, or the first itself. A provider accepts
    such a message behind the user's words or a tool's result, before an answer or at the end.
    Where somebody has edited the history, it moves on to the next such place.
    """
    waiting: list[Instruction] = []
    last = next(iter(instructions), None)
    placed = group_by_message(instructions)
    for index, message in enumerate(messages):
        yield message
        waiting += placed.get(message.id, ())
        if not waiting or isinstance(message, AIMessage):
            continue
        if index + 1 == len(messages) or _is_answer(messages[index + 1]):
            for note in waiting:
                yield build(note, last or note)
                last = note
            waiting = []


def _is_answer(message: AnyMessage) -> bool:
    """Whether it is one that is sent: Anthropic's client leaves an empty one out."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.text.strip())


def append_instructions(
    messages: Sequence[AnyMessage], instructions: Sequence[Instruction]
) -> list[AnyMessage]:
    """Each instruction at the end of its message, for servers with one system message at most."""
    placed = group_by_message(instructions)
    return [
        _append(message, placed[message.id]) if message.id in placed else message
        for message in messages
    ]


def remove_instructions(text: str) -> str:
    """A message's text without what ``append_instructions`` put there."""
    return _TAGGED.sub("", text)


def group_by_message(instructions: Sequence[Instruction]) -> dict[str | None, list[Instruction]]:
    """The instructions by the id of the message that they stand behind."""
    placed: dict[str | None, list[Instruction]] = {}
    for note in instructions:
        placed.setdefault(note["after"], []).append(note)
    return placed


def _append(message: AnyMessage, instructions: Sequence[Instruction]) -> AnyMessage:
    added = "".join(f"\n\n<{_TAG}>\n{note['text']}\n</{_TAG}>" for note in instructions)
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": content + added})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": added}]})


RESPONSES = "openai"
"""OpenAI's Responses API, with a model that reasons."""
RESPONSES_UNREASONED = "openai-unreasoned"
"""The Responses API with a model that does not reason, and refuses others' reasoning."""
CHAT_COMPLETIONS = "openai-chat"
"""A server that speaks OpenAI's Chat Completions."""
_IDS = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    RESPONSES: re.compile(r".{1,64}"),
    RESPONSES_UNREASONED: re.compile(r".{1,64}"),
}
"""Which call ids of others an API takes; any if it is not listed: ``chat_history`` sees to them."""

_TAKE_IMAGES = ("anthropic",)
"""The APIs that take images in the result of a tool, through their clients in LangChain."""
_IMAGES = ("image", "image_url")


def get_model_api(model: BaseChatModel, provider: str) -> str:
    """The API that asks the model of ``provider``."""
    if provider != "openai":
        return provider
    if not getattr(model, "use_responses_api", False):
        return CHAT_COMPLETIONS
    return RESPONSES if getattr(model, "include", None) else RESPONSES_UNREASONED


def prepare_for_provider(
    messages: Sequence[AnyMessage], api: str, unshown: Collection[str] = ()
) -> list[AnyMessage]:
    """The history for a model behind ``api``, with words for the images of messages ``unshown``.

    What is not text in an answer, such as thinking, goes back to its own API only; so do call
    ids that are not taken everywhere. The user comes first, as Anthropic wants it.
    """
    sent = list(messages)
    taken = _IDS.get(api)
    renamed: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            has_more = type(message.content) is list or message.additional_kwargs
            if (has_more or taken is not None) and get_api(message) != api:
                sent[index] = _translate(message, taken, renamed)
        elif type(message.content) is list and _count_images(message):
            takes = isinstance(message, HumanMessage) or api in _TAKE_IMAGES
            if not takes or message.id in unshown:
                sent[index] = _replace_images(message)
        if renamed and isinstance(message, ToolMessage) and message.tool_call_id in renamed:
            id = renamed[message.tool_call_id]
            sent[index] = sent[index].model_copy(update={"tool_call_id": id})
    if not isinstance(messages[0], HumanMessage):
        sent.insert(0, HumanMessage("(The user is here.)"))
    return sent


def mark_known(messages: list[AnyMessage], mark: Mapping[str, str]) -> list[AnyMessage]:
    """``messages``, the prompt first, with Anthropic's ``mark`` at the ends of what its cache has.

    That is the prompt, with the tools before it, and where the request before ended. By itself
    the service looks for it 20 blocks back, and ten calls with their results are more.
    """
    answers = (at for at, message in enumerate(messages) if isinstance(message, AIMessage))
    ends = {0, max(answers, default=1) - 1}
    return [_mark(message, mark) if at in ends else message for at, message in enumerate(messages)]


def _mark(message: AnyMessage, mark: Mapping[str, str]) -> AnyMessage:
    content = message.content
    if isinstance(message, AIMessage):
        return message
    if isinstance(message, ToolMessage):  # marked as a whole, for its content may be empty
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        blocks: list[Any] = [{**result, "is_error": message.status == "error"}]
    else:
        blocks = list_blocks(content)
    return message.model_copy(
        update={"content": [*blocks[:-1], {**blocks[-1], "cache_control": mark}]}
    )


def list_pictured(messages: Iterable[AnyMessage]) -> set[str]:
    """The ids of the messages that have images."""
    return {message.id for message in messages if message.id and _count_images(message)}


def _count_images(message: AnyMessage) -> int:
    blocks = message.content if isinstance(message.content, list) else []
    return sum(isinstance(block, dict) and block.get("type") in _IMAGES for block in blocks)


def _replace_images(message: AnyMessage) -> AnyMessage:
    """A model that is shown no image is told so."""
    text = f"{message.text}\n[images that you cannot be shown: {_count_images(message)}]"
    return message.model_copy(update={"content": text.strip()})


def get_api(message: AIMessage) -> str | None:
    """The API that gave an answer; None if no provider did."""
    metadata = message.response_metadata
    provider: str | None = metadata.get("model_provider")
    if provider == "openai" and metadata.get("object") != "response":
        return CHAT_COMPLETIONS
    return provider


def _translate(
    message: AIMessage, taken: re.Pattern[str] | None, renamed: dict[str, str]
) -> AIMessage:
    """An answer of another API; adds to ``renamed`` the call ids that are not taken."""
    update: dict[str, object] = {}
    if (beside := message.additional_kwargs) and beside.keys() != {ORIGIN}:
        update["additional_kwargs"] = {ORIGIN: beside[ORIGIN]} if ORIGIN in beside else {}
    if isinstance(message.content, list):
        update["content"] = clean_text(message.text)
    calls = message.tool_calls
    if taken is not None and (
        odd := [id for id in map(get_call_id, calls) if not taken.fullmatch(id)]
    ):
        renamed.update({id: f"call_{sha256(id.encode()).hexdigest()[:32]}" for id in odd})
        update["tool_calls"] = [
            ToolCall(**{**call, "id": renamed.get(get_call_id(call), call["id"])}) for call in calls
        ]
    return message.model_copy(update=update) if update else message
