"""``check_answer``: what a model answered, as something that the history can hold.

Strict where LangChain is lenient: a call that broke off, or may have, does not run.
"""

import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall

from graph.messages.normal_form import AnyCall, explain_bad_json, mark_broken, normalize
from graph.messages.streamed_calls import StreamedCalls
from modes.errors import ProviderError

REFUSED = "The model declined to answer."
CUT_OFF = "[Cut off: the model's limit of tokens for an answer was reached.]"
TOO_LONG = (
    "the answer was cut off at the model's limit of tokens, perhaps in the middle of this call; "
    "make it again in smaller parts"
)
BROKE_OFF = (
    "the model's answer broke off, and nothing of it is kept; send a message, 'go on' say, "
    "to try again"
)
EMPTY = (
    "the model answered with nothing, as some do when they decline or have no more to say; "
    "send a message to go on"
)
SAYS_WHY_IT_STOPS = frozenset({"anthropic", "openai"})
"""Providers that end every whole answer with a reason."""


def check_answer(
    answer: AIMessage, streamed: StreamedCalls, earlier: Sequence[AnyMessage] = ()
) -> AIMessage:
    """``answer``, each of its calls whole or marked as broken, and no word of it lost.

    Its ids are none that ``earlier`` messages and their calls have. Raises
    ``ProviderError`` for an answer that says nothing, and for one that broke off.
    """
    return _with_own_ids(_whole(answer, streamed), earlier)


def _whole(answer: AIMessage, streamed: StreamedCalls) -> AIMessage:
    reason = _stop_reason(answer)
    if not reason and answer.response_metadata.get("model_provider") in SAYS_WHY_IT_STOPS:
        raise ProviderError(BROKE_OFF)
    refusal = answer.additional_kwargs.get("refusal") or _refusal(answer)
    if refusal or _DECLINED.search(reason):
        return _said(answer, refusal or answer.text or REFUSED)
    is_truncated = _TRUNCATED.search(reason) is not None
    calls: list[AnyCall] = [*answer.tool_calls, *answer.invalid_tool_calls]
    if not calls and not answer.text.strip():
        raise ProviderError(f"{EMPTY} ({CUT_OFF})" if is_truncated else EMPTY)
    if is_truncated and not calls:
        return _said(answer, f"{answer.text}\n\n{CUT_OFF}")
    if is_truncated:
        return _with_calls(answer, [mark_broken(call, TOO_LONG) for call in calls])
    if reason and not _FINISHED.fullmatch(reason):
        why = f"the model stopped for a reason that is not known here: {reason[:100]!r}"
        return _with_calls(answer, [mark_broken(call, why) for call in calls])
    return answer.model_copy(update={"tool_calls": list(_marked(answer.tool_calls, streamed))})


# A reason that comes twice in a stream stands there twice, without a space.
_FINISHED = re.compile(
    r"(?:stop|stop_sequence|eos|eos_token|end_turn|tool_calls?|tool_use|function_call|completed?)+",
    re.I,
)
_TRUNCATED = re.compile(r"length|max_|incomplete|context_window", re.I)
_DECLINED = re.compile(r"refusal|content_filter|safety", re.I)


def _with_own_ids(answer: AIMessage, earlier: Sequence[AnyMessage]) -> AIMessage:
    if answer.id in {message.id for message in earlier}:
        # The reducer would put it in the earlier message's place.
        answer = answer.model_copy(update={"id": str(uuid4())})
    if not answer.tool_calls and not answer.invalid_tool_calls:
        return normalize(answer)
    # Small servers count their calls anew in every answer; Anthropic wants each id once.
    taken = {
        call["id"]
        for message in earlier
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    return normalize(answer, taken)


def _refusal(answer: AIMessage) -> str:
    """The words of a refusal that came over the Responses API."""
    blocks = answer.content if isinstance(answer.content, list) else ()
    words = (block.get("refusal") for block in blocks if isinstance(block, dict))
    return "".join(text for text in words if isinstance(text, str))


def _stop_reason(answer: AIMessage) -> str:
    """Why it stopped; each format has a name of its own for it."""
    found = answer.response_metadata
    if reason := (found.get("incomplete_details") or {}).get("reason"):
        return str(reason)
    names = ("finish_reason", "stop_reason", "done_reason", "status")
    return next((str(found[name]) for name in names if found.get(name)), "")


def _said(answer: AIMessage, text: str) -> AIMessage:
    """The answer with these words, and no calls."""
    return _with_calls(answer.model_copy(update={"content": text}), [])


def _with_calls(answer: AIMessage, calls: list[ToolCall]) -> AIMessage:
    return answer.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def _marked(calls: Sequence[ToolCall], streamed: StreamedCalls) -> Iterator[ToolCall]:
    """The calls, those marked that did not come whole."""
    for call, text in zip(calls, streamed.broken(calls), strict=True):
        yield call if text is None else mark_broken(call, explain_bad_json(text))
