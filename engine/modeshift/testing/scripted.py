"""``ScriptedModel`` and ``ScriptedService`` give the answers of a script, whatever is asked."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field
from typing_extensions import override

from modeshift.models.offline import LocalModel
from modeshift.modes.plain_data import JsonObject

Call = tuple[str, JsonObject]
"""A tool's name, and the arguments."""
ScriptStep = Sequence[Call] | str | Exception
"""The calls of an answer, its words, or how the model fails."""


class ModelRequest(NamedTuple):
    """One request to the model: the messages, and the names of the tools bound."""

    messages: list[BaseMessage]
    tools: frozenset[str]


class ScriptedModel(LocalModel):
    """Gives ``answers`` in order, then says ``done``; keeps what it was asked."""

    answers: list[Any]
    """``AIMessage``, or what is raised."""
    asked: list[ModelRequest] = Field(default_factory=list)

    @classmethod
    def of(cls, *steps: ScriptStep) -> Self:
        """A model that takes one step after the other.

        The ids of calls are ``call_0``, ``call_1``, ... in the first, ``step1_0``, ... in the next.
        """
        return cls(answers=[_answer(*step) for step in enumerate(steps)])

    @override
    def answer(self, messages: Sequence[BaseMessage], tools: frozenset[str]) -> AIMessage:
        self.asked.append(ModelRequest([*messages], tools))
        number = len(self.asked) - 1
        answer = self.answers[number] if number < len(self.answers) else AIMessage("done")
        if isinstance(answer, Exception):
            raise answer
        copied: AIMessage = answer.model_copy(deep=True)
        return copied


def calling(*calls: Call, prefix: str = "call") -> AIMessage:
    """A message that calls tools, with ids ``call_0``, ``call_1``, ..."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": args, "id": f"{prefix}_{index}"}
            for index, (name, args) in enumerate(calls)
        ],
    )


def _answer(number: int, step: ScriptStep) -> AIMessage | Exception:
    if isinstance(step, str):
        return AIMessage(step)
    if isinstance(step, Exception):
        return step
    return calling(*step, prefix=f"step{number}" if number else "call")


SOURCE = "scripted provider"
"""What the header ``server`` of its answers says."""
KEY = "sk-ant-scripted-0123456789abcdef"


class ScriptedService:
    """Takes one step of the script for each request, whatever it is asked."""

    def __init__(self, steps: Sequence[ScriptStep]) -> None:
        self.steps_left = list(steps)
        self.requests = 0
        """How many requests there were."""
        self._made = 0

    def answer(self, sent: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body for a request's body."""
        self.requests += 1
        if not self.steps_left:
            error = {"type": "invalid_request_error", "message": "the script is at its end"}
            return 400, "application/json", json.dumps({"type": "error", "error": error}).encode()
        body = json.loads(sent)
        message = self._make(body["model"], len(sent) // 4, self.steps_left.pop(0))
        if not body.get("stream"):
            return 200, "application/json", json.dumps(message, ensure_ascii=False).encode()
        written = ((e["type"], json.dumps(e, ensure_ascii=False)) for e in _list_events(message))
        events = (f"event: {kind}\ndata: {data}\n\n" for kind, data in written)
        return 200, "text/event-stream; charset=utf-8", "".join(events).encode()

    def _make(self, model: str, tokens: int, step: ScriptStep) -> JsonObject:
        assert not isinstance(step, Exception), "a provider's failure is not recorded"
        if isinstance(step, str):
            content: list[JsonObject] = [{"type": "text", "text": step}]
        else:
            content = [
                {"type": "tool_use", "id": self._new("toolu"), "name": name, "input": args}
                for name, args in step
            ]
        return {
            "id": self._new("msg"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "end_turn" if isinstance(step, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": tokens, "output_tokens": len(json.dumps(content)) // 4},
        }

    def _new(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}_{self._made:024}"


def _list_events(message: JsonObject) -> Iterator[JsonObject]:
    """The message as a stream brings it, each block in one piece."""
    empty = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": empty}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            begun: JsonObject = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            begun = {"input": {}}
            text = json.dumps(block["input"], ensure_ascii=False)
            delta = {"type": "input_json_delta", "partial_json": text}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **begun}}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}
