"""``usable``: what a model answered, as something that the history can hold.

Strict where LangChain is lenient: it mends the arguments of a streamed call that broke off
(``parse_partial_json``), so that half a command looks like a whole one.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from typing_extensions import override

from graph.history import AnyCall, broken, no_json, normalised
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


@dataclass
class _Arrived:
    """One call of a stream, as it came."""

    id: str | None
    name: str = ""
    text: str = ""

    def is_whole(self, call: ToolCall) -> bool:
        """Whether all of the call's arguments have come, and nothing else."""
        try:
            # As lenient as LangChain of a line break in a string, and of nothing else.
            return bool(json.loads(self.text or "{}", strict=False) == call["args"])
        except (ValueError, RecursionError):
            return False


class StreamedCalls(BaseCallbackHandler):
    """The arguments of a streamed answer's calls as they came, which the message has lost."""

    # Were the start not ignored, LangChain would write the whole history as text at every step.
    ignore_agent = ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True
    ignore_chat_model = True
    raise_error = True
    run_inline = True  # and not in a task or a thread of its own, for each piece

    def __init__(self) -> None:
        self.has_begun = False
        """Whether something of the answer has come, and perhaps been shown."""
        self._arrived: list[_Arrived] = []
        self._at: dict[int | None, _Arrived] = {}
        """The call that a piece with this index goes on with."""

    @override
    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Keep what the chunk adds to a call."""
        self.has_begun = True
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk):
            for piece in message.tool_call_chunks:
                self._add(piece)

    @override
    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The same for a client that listens to LangChain's own kind of events."""
        self.has_begun = True

    def _add(self, piece: ToolCallChunk) -> None:
        one = self._at.get(piece["index"])
        # Some small servers give every call the index 0, or none.
        if one is None or (piece["id"] and one.id and piece["id"] != one.id):
            one = self._at[piece["index"]] = _Arrived(piece["id"])
            self._arrived.append(one)
        one.id = one.id or piece["id"]
        one.name += piece["name"] or ""
        one.text += piece["args"] or ""

    def broken(self, calls: Sequence[ToolCall]) -> list[str | None]:
        """For each call what came of its arguments, if that is not what the call has.

        All None for an answer that was not streamed.
        """
        if not self._arrived:
            return [None] * len(calls)
        return [
            None if one is not None and one.is_whole(call) else (one.text if one else "?")
            for call, one in zip(calls, self._of(calls), strict=True)
        ]

    def _of(self, calls: Sequence[ToolCall]) -> list[_Arrived | None]:
        """What arrived of each call; None where that cannot be told: ids may come twice."""
        if not all(one.name for one in self._arrived):
            return [None] * len(calls)  # a stray piece, and nobody knows of which
        if len(calls) == len(self._arrived):
            pairs = zip(calls, self._arrived, strict=True)
            return [
                one if (one.id or None) == (call["id"] or None) else None for call, one in pairs
            ]
        found = []
        for call in calls:
            same = [one for one in self._arrived if one.id and one.id == call["id"]]
            found.append(same[0] if len(same) == 1 else None)
        return found


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
    if not reason and answer.response_metadata.get("model_provider") in SAYS_WHY_IT_STOPS:
        raise ProviderError(BROKE_OFF)
    refusal = answer.additional_kwargs.get("refusal")
    if refusal or _DECLINED.search(reason):
        return _said(answer, refusal or answer.text or REFUSED)
    is_truncated = _TRUNCATED.search(reason) is not None
    calls: list[AnyCall] = [*answer.tool_calls, *answer.invalid_tool_calls]
    if not calls and not answer.text.strip():
        raise ProviderError(f"{EMPTY} ({CUT_OFF})" if is_truncated else EMPTY)
    if is_truncated and not calls:
        return _said(answer, f"{answer.text}\n\n{CUT_OFF}")
    if is_truncated:
        return _with_calls(answer, [broken(call, TOO_LONG) for call in calls])
    if reason and not _FINISHED.fullmatch(reason):
        why = f"the model stopped for a reason that is not known here: {reason[:100]!r}"
        return _with_calls(answer, [broken(call, why) for call in calls])
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
    ids = [call["id"] or "" for call in (*answer.tool_calls, *answer.invalid_tool_calls)]
    taken: set[str | None] = set()
    if any(len(id) < MIN_RANDOM for id in ids):
        # Small servers count their calls anew in every answer; Anthropic wants each id once.
        taken = {
            call["id"]
            for message in earlier
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
    return normalised(answer, taken)


MIN_RANDOM = 20
"""Characters from which on an id is random, and not a number that somebody counts."""


def _stop_reason(answer: AIMessage) -> str:
    """Why it stopped; each format has a name of its own for it."""
    found = answer.response_metadata
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
        yield call if text is None else broken(call, no_json(text))
