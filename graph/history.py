"""The history: which calls are open, and its repair.

Providers refuse a history in which a tool call has no answer, or more than one,
or one that does not stand directly behind the message that made the call.
"""

from collections.abc import Collection, Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

NOT_RUN = "Not run: the user went on without deciding about this call."
UNKNOWN = (
    "Stopped while it ran: it may have taken effect, in whole, in part or not at all. "
    "Find out before you do it again."
)


def call_id(call: ToolCall) -> str:
    """The id of a call; the mode nodes see to it that there is one."""
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


def is_alone(messages: Sequence[AnyMessage]) -> bool:
    """Whether the last assistant message made a single call."""
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    return last is not None and len(last.tool_calls) == 1


def repaired(messages: Sequence[AnyMessage], running: Collection[str] = ()) -> list[AnyMessage]:
    """The history with exactly one answer to each call, directly behind it.

    A call without an answer gets one that says so; ``running`` names the calls
    that were under way when the run was cut off.
    """
    return list(_repaired(messages, running))


def _repaired(messages: Sequence[AnyMessage], running: Collection[str]) -> Iterator[AnyMessage]:
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        yield message
        if isinstance(message, AIMessage) and message.tool_calls:
            answers = _answers(messages[index + 1 :])
            for call in message.tool_calls:
                yield answers.get(call_id(call)) or _missing(call, running)


def _answers(following: Sequence[AnyMessage]) -> dict[str, ToolMessage]:
    """The first answer to each id, up to the next assistant message that calls tools."""
    answers: dict[str, ToolMessage] = {}
    for message in following:
        if isinstance(message, AIMessage) and message.tool_calls:
            break
        if isinstance(message, ToolMessage):
            answers.setdefault(message.tool_call_id, message)
    return answers


def _missing(call: ToolCall, running: Collection[str]) -> ToolMessage:
    text = UNKNOWN if call_id(call) in running else NOT_RUN
    return ToolMessage(text, tool_call_id=call_id(call), name=call["name"], status="error")
