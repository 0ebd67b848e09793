"""``repair``: a history with one result for each call; and marks around text that is only data.

A mark enforces nothing: it lets a model tell what a file says from what the user says.
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from modeshift.messages.normal_form import get_call_id
from modeshift.modes.errors import ModelError, ToolFailedError, describe_error
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import make_readable, name_count

NOT_RUN = "Not run: the turn went on without this call."
VOID = (
    "Not run: the mode, its rules or the files have changed since the user was asked. "
    "Call again if it is still needed."
)
REJECTED = "Not run: the user rejected this call"
BEHIND = (
    "Not run: the user rejected a call before it in the same message. "
    "Call again if it is still needed."
)
CHANGED = "Not run: the host has changed the mode, its limit or what is approved without asking."
UNKNOWN = (
    "Stopped while it ran: it may have taken effect, in whole, in part or not at all. "
    "Find out before you do it again."
)
DONE = "Done, though it was cut off before the result was kept: the file is as it was to be."
WORDS = {
    VOID: "Not run: the mode, its rules or the files have changed since you were asked.",
    BEHIND: "Not run: you said no to a call before it in the same message.",
    UNKNOWN: "Stopped while it ran: it may have taken effect, in whole, in part or not at all.",
}
"""What a person reads in place of what the model reads."""
_CLASS = re.compile(r"^\w+Error: ")

BROKE_OFF = (
    "the model's answer broke off, and nothing of it is kept; send a message, such as 'go on', "
    "to try again"
)


def build_not_run_result(call: ToolCall, text: str = NOT_RUN) -> ToolMessage:
    """The result of a call that did not run; ``shown`` in its artifact is for a person."""
    id, shown = get_call_id(call), WORDS.get(text) or _CLASS.sub("", text, count=1)
    facts = {} if shown == text else {"artifact": {"shown": shown}}
    return ToolMessage(text, tool_call_id=id, name=call["name"], status="error", **facts)


def build_rejection(call: ToolCall, why: str) -> ToolMessage:
    """The result of a call that a person has refused."""
    result = build_not_run_result(
        call,
        f"{REJECTED} and said: {why}" if why else f"{REJECTED}; do not repeat it unless asked to",
    )
    shown = f"You said no: {why}" if why else "You said no."
    result.artifact = {"shown": shown, "is_rejected": True}
    return result


def find_open_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the last assistant message that have no result yet, in order."""
    answered = set[str]()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [call for call in message.tool_calls if get_call_id(call) not in answered]
        if not isinstance(message, ToolMessage):
            return []
        answered.add(message.tool_call_id)
    return []


def find_last_answer(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """The last assistant message."""
    return next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)


def repair(
    messages: Sequence[AnyMessage],
    begun: Mapping[str, ToolMessage] = MappingProxyType({}),
    text: str = NOT_RUN,
) -> list[AnyMessage]:
    """The history with exactly one result for each call, directly behind it.

    A call without a result gets that in ``begun``, by id, where a run was cut off; or ``text``.
    """
    repaired: list[AnyMessage] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        repaired.append(message)
        if isinstance(message, AIMessage) and message.tool_calls:
            # In the order in which they came: so they have been sent already.
            results = _collect_results(message, messages[index + 1 :])
            repaired += results.values()
            for call in message.tool_calls:
                if get_call_id(call) not in results:
                    result = begun.get(get_call_id(call)) or build_not_run_result(call, text)
                    repaired.append(result)
    return repaired


def _collect_results(asking: AIMessage, following: Sequence[AnyMessage]) -> dict[str, ToolMessage]:
    """The first result for each call, up to the next assistant message that calls tools."""
    ids = set(map(get_call_id, asking.tool_calls))
    results: dict[str, ToolMessage] = {}
    for message in following:
        if isinstance(message, AIMessage) and message.tool_calls:
            break
        if isinstance(message, ToolMessage) and message.tool_call_id in ids:
            results.setdefault(message.tool_call_id, message)
    return results


MAX_RESULT_CHARACTERS = 100_000
MAX_SOURCE = 200
WRITTEN_OUT = r"[characters that do not show are written out, such as \u202e]"
EDITED = (
    "[The user changed the arguments to {args!r} before it ran; do not repeat your own call.]\n"
)
"""One line that the model reads before the result."""
_MARKED = re.compile(r"<data-([0-9a-f]{12}) source=[^\n]*>\n(.*)\n</data-\1>", re.DOTALL)


def mark_as_data(text: str, source: str, call_id: str) -> str:
    """``text`` between marks that it cannot forge, because they depend on all of it.

    The same call with the same result gets the same marks, so that it can be replayed.
    """
    name = f"data-{sha256(f'{call_id}{text}'.encode()).hexdigest()[:12]}"
    return f"<{name} source={json.dumps(source[:MAX_SOURCE])}>\n{text}\n</{name}>"


def remove_marks(text: str) -> str:
    """``text`` without its marks."""
    return _MARKED.sub(lambda match: match[2], text)


def show_result(message: ToolMessage) -> str:
    """The text as a person reads it; what a tool has said stays as it is."""
    facts = message.artifact if isinstance(message.artifact, dict) else {}
    is_changed = "changed_to" in facts
    text = message.text.partition("\n")[2] if is_changed else message.text
    text = remove_marks(facts.get("shown", text))
    return f"Run with your arguments: {facts['changed_to']!r}\n{text}" if is_changed else text


def truncate(text: str, limit: int = MAX_RESULT_CHARACTERS) -> str:
    """Bound a result of any text, and write out what a provider or a terminal cannot take."""
    text = text.encode("utf-8", "backslashreplace").decode()
    cut = text[:limit]
    shown = make_readable(cut)
    lines = [shown[:limit]]
    if left_out := len(text) - len(cut) + len(shown) - len(lines[0]):
        lines.append(f"[{name_count(left_out, 'more character')} left out]")
    if shown != cut:
        lines.append(WRITTEN_OUT)
    return "\n".join(lines)


def describe_failure(error: BaseException, source: str, call_id: str, limit: int) -> str:
    """What the model reads; the text of an exception that is not ours is marked as data."""
    text = truncate(describe_error(error), limit)
    if isinstance(error, ToolFailedError) and error.data:
        return f"{text}\n{mark_as_data(truncate(error.data), source, call_id)}"
    if isinstance(error, ModelError):
        return text
    return mark_as_data(text, f"error of {source}", call_id)


def mark_edited(message: ToolMessage, args: JsonObject) -> None:
    """Say in the result that a person has edited the call's arguments."""
    message.content = EDITED.format(args=args) + message.text
    if message.artifact is None or isinstance(message.artifact, dict):
        message.artifact = {**(message.artifact or {}), "changed_to": args}
