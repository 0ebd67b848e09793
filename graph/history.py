"""The history: which calls are open, and its repair.

Providers refuse a history in which a tool call has no answer, or more than one,
or one that does not stand directly behind the message that made the call.
"""

import re
from collections.abc import Collection, Iterator, Sequence
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

from tools.arguments import BROKEN, misfit

AnyCall = ToolCall | InvalidToolCall

NOT_RUN = "Not run: the turn went on without this call."
VOID = (
    "Not run: the mode, its rules or the files have changed since the user was asked. "
    "Call again if it is still needed."
)
UNKNOWN = (
    "Stopped while it ran: it may have taken effect, in whole, in part or not at all. "
    "Find out before you do it again."
)


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
        if not id or id in seen or not _ID.fullmatch(id):
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


def not_run(call: ToolCall, text: str = NOT_RUN) -> ToolMessage:
    """The answer to a call that did not run."""
    return ToolMessage(text, tool_call_id=call_id(call), name=call["name"], status="error")


def call_id(call: ToolCall) -> str:
    """The id of a call of a ``normalised`` message."""
    return str(call["id"])


def open_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the last assistant message that have no answer yet, in order."""
    answered = set[str]()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [call for call in message.tool_calls if call_id(call) not in answered]
        if not isinstance(message, ToolMessage):
            return []
        answered.add(message.tool_call_id)
    return []


def last_answer(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """The last assistant message."""
    return next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)


def is_alone(messages: Sequence[AnyMessage]) -> bool:
    """Whether the last assistant message made a single call."""
    last = last_answer(messages)
    return last is not None and len(last.tool_calls) == 1


def repaired(
    messages: Sequence[AnyMessage], running: Collection[str] = (), text: str = NOT_RUN
) -> list[AnyMessage]:
    """The history with exactly one answer to each call, directly behind it.

    A call without an answer gets ``text``; ``running`` names the calls that were
    under way when the run was cut off.
    """
    return list(_repaired(messages, running, text))


def _repaired(
    messages: Sequence[AnyMessage], running: Collection[str], text: str
) -> Iterator[AnyMessage]:
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        yield message
        if isinstance(message, AIMessage) and message.tool_calls:
            answers = _answers(messages[index + 1 :])
            for call in message.tool_calls:
                yield answers.get(call_id(call)) or not_run(
                    call, UNKNOWN if call_id(call) in running else text
                )


def _answers(following: Sequence[AnyMessage]) -> dict[str, ToolMessage]:
    """The first answer to each id, up to the next assistant message that calls tools."""
    answers: dict[str, ToolMessage] = {}
    for message in following:
        if isinstance(message, AIMessage) and message.tool_calls:
            break
        if isinstance(message, ToolMessage):
            answers.setdefault(message.tool_call_id, message)
    return answers
