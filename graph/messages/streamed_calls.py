"""``StreamedCalls``: the calls of a streamed answer as they came over the wire.

LangChain mends the arguments of a call that broke off (``parse_partial_json``), so that half a
command looks like a whole one, and keeps nothing of how it came.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessageChunk, ToolCall, ToolCallChunk
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from typing_extensions import override


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
    """Listens to one answer; nothing comes where it is not streamed."""

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
