"""``check_answer``: a model's answer in a form that the history can hold.

Strict where LangChain is lenient: a call that was cut off, or may have been, does not run.
"""

import json
import re
from collections.abc import Collection, Sequence
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    ToolCall,
    ToolCallChunk,
    ToolMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks

from modeshift.messages.normal_form import AnyCall, explain_bad_json, mark_broken, normalize
from modeshift.messages.repair import BROKE_OFF
from modeshift.modes.errors import ProviderError

REFUSED = "The model declined to answer."
ENDED = "[The model ended its turn without a word.]"
CUT_OFF = "[Cut off: the model's limit of tokens for an answer was reached.]"
CUT_EMPTY = (
    "the answer was cut off at the model's limit of tokens before it had a word; "
    "send a message to go on"
)
TOO_LONG = (
    "the answer was cut off at the model's limit of tokens, perhaps in the middle of this call; "
    "make it again in smaller parts"
)
EMPTY = (
    "the model answered with nothing, as some do when they decline or have no more to say; "
    "send a message to go on"
)
MALFORMED = (
    "the model's answer is malformed, and nothing of it is kept; send a message, such as 'go on', "
    "to try again"
)
GIVES_A_REASON = frozenset({"anthropic", "openai"})
"""Providers that end every complete answer with a reason."""
# LangChain joins a reason that comes twice in a stream, without a space.
_FINISHED = re.compile(
    r"(?:stop|stop_sequence|eos|eos_token|end_turn|tool_calls?|tool_use|function_call|completed?)+",
    re.I,
)
_TRUNCATED = re.compile(r"length|max_|incomplete|context_window", re.I)
_DECLINED = re.compile(r"refusal|content_filter|safety", re.I)
_REFUSAL = "is_refusal"
"""A key in the metadata of an answer."""


def check_answer(
    answer: AIMessage,
    chunks: Sequence[AIMessageChunk] = (),
    earlier: Sequence[AnyMessage] = (),
    taken: Collection[str] = (),
) -> AIMessage:
    """``answer`` with each of its calls complete or marked as broken, and all its words.

    Args:
        answer: As LangChain gives it.
        chunks: What it was put together from, if it was streamed.
        earlier: The history; the answer and its calls get ids that are not in it.
        taken: More ids that no call gets.

    Raises:
        ProviderError: If the answer is empty, malformed, or broke off.
    """
    _check_shape(answer)
    last = earlier[-1] if earlier else None
    is_behind_result = isinstance(last, ToolMessage) and last.status != "error"
    checked = _check_end(_reread_calls(answer, chunks), may_be_empty=is_behind_result)
    if checked.id in {message.id for message in earlier}:
        # The reducer would replace the earlier message.
        checked = checked.model_copy(update={"id": str(uuid4())})
    if not checked.tool_calls and not checked.invalid_tool_calls:
        return normalize(checked)
    # Small servers count their calls from the start in every answer; Anthropic wants each id once.
    in_history = {
        call["id"]
        for message in earlier
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    return normalize(checked, {*in_history, *taken})


def is_complete(answer: AIMessage) -> bool:
    """Whether a checked answer is all that the model had to say, and no refusal."""
    metadata = answer.response_metadata
    return not metadata.get(_REFUSAL) and _TRUNCATED.search(_stop_reason(answer)) is None


def _check_shape(answer: AIMessage) -> None:
    """Refuse what clients fail at: once it is in the history, every later request would."""
    blocks = answer.content if isinstance(answer.content, list) else ()
    for block in blocks:
        if isinstance(block, dict) and not (
            isinstance(block.get("type"), str) and isinstance(block.get("text", ""), str)
        ):
            raise ProviderError(MALFORMED)
    try:
        json.dumps([answer.content, answer.additional_kwargs], allow_nan=False, default=repr)
    except (ValueError, RecursionError):
        raise ProviderError(MALFORMED) from None


def _reread_calls(answer: AIMessage, chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """The answer with its calls read from the chunks, strictly.

    LangChain completes arguments that broke off, so that half a command looks complete.
    """
    with_calls = [chunk for chunk in chunks if chunk.tool_call_chunks]
    if not with_calls:
        return answer
    pieces = add_ai_message_chunks(with_calls[0], *with_calls[1:]).tool_call_chunks
    has_stray = not all(piece["name"] for piece in pieces)  # nobody knows of which call
    return _with_calls(answer, [_read_call(piece, is_sure=not has_stray) for piece in pieces])


def _read_call(piece: ToolCallChunk, *, is_sure: bool) -> ToolCall:
    call = ToolCall(name=piece["name"] or "", args={}, id=piece["id"], type="tool_call")
    try:
        # As lenient as LangChain about line breaks in strings, and nothing else.
        args = json.loads(piece["args"] or "{}", strict=False)
    except (ValueError, RecursionError):
        args = None
    if not is_sure or not isinstance(args, dict):
        return mark_broken(call, explain_bad_json(piece["args"]))
    return {**call, "args": args}


def _check_end(answer: AIMessage, *, may_be_empty: bool) -> AIMessage:
    """The answer as the reason for its end allows."""
    reason = _stop_reason(answer)
    if not reason and answer.response_metadata.get("model_provider") in GIVES_A_REASON:
        raise ProviderError(BROKE_OFF)
    refusal = answer.additional_kwargs.get("refusal") or _refusal(answer)
    if refusal or _DECLINED.search(reason):
        declined = _with_text(answer, refusal or answer.text or REFUSED)
        declined.response_metadata = {**declined.response_metadata, _REFUSAL: True}
        return declined
    is_truncated = _TRUNCATED.search(reason) is not None
    calls: list[AnyCall] = [*answer.tool_calls, *answer.invalid_tool_calls]
    if not calls and not answer.text.strip():
        if may_be_empty and reason == "end_turn":  # Anthropic's, which has nothing to add
            return _with_text(answer, ENDED)
        raise ProviderError(CUT_EMPTY if is_truncated else EMPTY)
    if is_truncated and not calls:
        return _with_text(answer, f"{answer.text}\n\n{CUT_OFF}")
    if is_truncated:
        return _with_calls(answer, [mark_broken(call, TOO_LONG) for call in calls])
    if reason and not _FINISHED.fullmatch(reason):
        why = f"the model stopped for a reason that is not known here: {reason[:100]!r}"
        return _with_calls(answer, [mark_broken(call, why) for call in calls])
    return answer


def _stop_reason(answer: AIMessage) -> str:
    """Why the model stopped; each format has its own name for it."""
    metadata = answer.response_metadata
    if reason := (metadata.get("incomplete_details") or {}).get("reason"):
        return str(reason)
    names = ("finish_reason", "stop_reason", "done_reason", "status")
    return next((str(metadata[name]) for name in names if metadata.get(name)), "")


def _refusal(answer: AIMessage) -> str:
    """The words of a refusal over the Responses API."""
    blocks = answer.content if isinstance(answer.content, list) else ()
    words = (block.get("refusal") for block in blocks if isinstance(block, dict))
    return "".join(text for text in words if isinstance(text, str))


def _with_text(answer: AIMessage, text: str) -> AIMessage:
    """The answer with this text, and no calls."""
    return _with_calls(answer.model_copy(update={"content": text}), [])


def _with_calls(answer: AIMessage, calls: list[ToolCall]) -> AIMessage:
    return answer.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
