"""``usable``: what a model answered, as something that the history can hold.

Strict where LangChain is lenient: it mends the arguments of a streamed call that broke off
(``parse_partial_json``), so that half a command looks like a whole one.
"""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from typing_extensions import override

from graph.history import AnyCall, broken, normalised
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


class StreamedCalls(AsyncCallbackHandler):
    """The arguments of a streamed answer's calls as they came, which the message has lost."""

    ignore_agent = ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True
    raise_error = True

    def __init__(self) -> None:
        self._texts: dict[Any, list[str]] = {}
        self._ids: dict[Any, str] = {}

    @override
    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Nothing; without it LangChain would write the whole history as text at every step."""

    @override
    async def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Keep what the chunk adds to a call."""
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk):
            for piece in message.tool_call_chunks:
                key = piece["index"] if piece["index"] is not None else piece["id"]
                self._texts.setdefault(key, []).append(piece["args"] or "")
                if piece["id"]:
                    self._ids.setdefault(key, piece["id"])

    def broken(self) -> dict[str | None, str]:
        """The arguments that are no JSON object, by the id of their call where it had one."""
        texts = {self._ids.get(key): "".join(parts) for key, parts in self._texts.items()}
        return {id: text for id, text in texts.items() if text and not _is_object(text)}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def usable(
    answer: AIMessage, streamed: StreamedCalls, earlier: Sequence[AnyMessage] = ()
) -> AIMessage:
    """``answer``, each of its calls whole or marked as broken, and no word of it lost.

    Its ids are none that ``earlier`` messages and their calls have. Raises
    ``ProviderError`` for an answer that says nothing, and for one that broke off.
    """
    return _with_own_ids(_whole(answer, streamed), earlier)


def _whole(answer: AIMessage, streamed: StreamedCalls) -> AIMessage:
    reason = _stop_reason(answer)
    if reason is None and answer.response_metadata.get("model_provider") in SAYS_WHY_IT_STOPS:
        raise ProviderError(BROKE_OFF)
    refusal = answer.additional_kwargs.get("refusal")
    if refusal or reason in ("refusal", "content_filter"):
        return _said(answer, refusal or answer.text or REFUSED)
    calls: list[AnyCall] = [*answer.tool_calls, *answer.invalid_tool_calls]
    is_truncated = reason in ("length", "max_tokens", "model_context_window_exceeded")
    if not calls and not answer.text.strip():
        raise ProviderError(f"{EMPTY} ({CUT_OFF})" if is_truncated else EMPTY)
    if is_truncated and calls:
        return _with_calls(answer, [broken(call, TOO_LONG) for call in calls])
    if is_truncated:
        return _said(answer, f"{answer.text}\n\n{CUT_OFF}")
    found = streamed.broken()
    return _with_calls(answer, _without(found, answer)) if found else answer


def _with_own_ids(answer: AIMessage, earlier: Sequence[AnyMessage]) -> AIMessage:
    if any(answer.id == message.id for message in earlier):
        # The reducer would put it in the earlier message's place.
        answer = answer.model_copy(update={"id": str(uuid4())})
    taken: set[str] = set()
    if answer.tool_calls or answer.invalid_tool_calls:
        # Small servers count their calls anew in every answer; Anthropic wants each id once.
        taken = {
            str(call["id"])
            for message in earlier
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
    return normalised(answer, taken)


def _stop_reason(answer: AIMessage) -> str | None:
    """OpenAI, Ollama and Anthropic each have a name for it."""
    found = answer.response_metadata
    return next(
        (
            found[name]
            for name in ("finish_reason", "stop_reason", "done_reason")
            if found.get(name)
        ),
        None,
    )


def _said(answer: AIMessage, text: str) -> AIMessage:
    """The answer with these words, and no calls."""
    return _with_calls(answer.model_copy(update={"content": text}), [])


def _with_calls(answer: AIMessage, calls: list[ToolCall]) -> AIMessage:
    return answer.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def _without(found: dict[str | None, str], answer: AIMessage) -> list[ToolCall]:
    """The calls, those marked whose arguments were ``found`` broken."""
    why = "its arguments are no JSON object"
    return [
        broken(call, f"{why}: {found.get(call['id'], '?')[:200]!r}")
        if call["id"] in found or None in found
        else call
        for call in answer.tool_calls
    ] + [broken(call, f"{why}: {str(call['args'])[:200]!r}") for call in answer.invalid_tool_calls]
