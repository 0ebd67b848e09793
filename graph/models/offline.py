"""The offline model: deterministic, no network, no language model.

It sees what a model sees, the messages and the tools bound, and works out from
them where it is: the last user message is the program, the calls since then are
the steps that it has taken.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from graph.messages.repair import VOID
from graph.messages.untrusted import remove_marks
from graph.models.offline_commands import HELP, Call, Step, parse

SHORT = 200


class OfflineModel(BaseChatModel):
    """Obeys the command language of ``offline_commands``."""

    @property
    @override
    def _llm_type(self) -> str:
        return "modeshift-offline"

    @override
    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; a ``tool_choice`` that forces one is refused, for the program chooses."""
        if tool_choice not in (None, "auto"):
            raise ValueError(f"tool_choice={tool_choice!r}: the offline model has no use for it")
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=respond(messages, _names(kwargs)))])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(respond(messages, _names(kwargs))):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(respond(messages, _names(kwargs))):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _names(kwargs: dict[str, Any]) -> frozenset[str]:
    return frozenset(tool["function"]["name"] for tool in kwargs.get("tools", ()))


def respond(messages: Sequence[BaseMessage], bound: frozenset[str]) -> AIMessage:
    """The next message of the conversation, given the names of the tools bound."""
    start = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=None)
    steps = parse(messages[start].text) if start is not None else []
    if start is None or not steps:
        return _message(messages, HELP, ())
    progress = _Progress(steps)
    progress.replay(messages[start + 1 :])
    calls = progress.next_calls(bound)
    return _message(messages, "" if calls else progress.report(), calls)


@dataclass
class _Progress:
    """How far the program has come, by the messages since."""

    steps: list[Step]
    position: int = 0
    asked: set[int] = field(default_factory=set)
    """Steps for whose sake a switch was asked for."""
    refused: set[int] = field(default_factory=set)
    """Steps that another mode can take, as the refusal said."""
    results: list[str] = field(default_factory=list)

    def replay(self, messages: Sequence[BaseMessage]) -> None:
        answers = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
        for message in messages:
            if isinstance(message, AIMessage) and message.tool_calls:
                found = [answers.get(str(call["id"])) for call in message.tool_calls]
                if found and all(answer is not None and answer.text == VOID for answer in found):
                    continue  # as if it had not been asked for
                calls = tuple(Call(call["name"], call["args"]) for call in message.tool_calls)
                self._take(calls, [answer for answer in found if answer is not None])

    def _take(self, calls: tuple[Call, ...], answers: list[ToolMessage]) -> None:
        while self.position < len(self.steps):
            step = self.steps[self.position]
            outcome = " ".join(map(_short, answers))
            if calls == step.calls:
                is_partly_there = any(" tools but for " in answer.text for answer in answers)
                if is_partly_there and self.position not in self.asked:
                    self.refused.add(self.position)
                else:
                    self._close(outcome)
                return
            if calls[0].name == "switch_mode" and self.position not in self.asked:
                self.asked.add(self.position)
                if any(answer.status == "error" for answer in answers):
                    self._close(outcome)
                return
            self._close(_NOT_POSSIBLE)

    def _close(self, result: str) -> None:
        self.results.append(f"- {self.steps[self.position].line}: {result}")
        self.position += 1

    def next_calls(self, bound: frozenset[str]) -> tuple[Call, ...]:
        while self.position < len(self.steps):
            step = self.steps[self.position]
            is_refused = self.position in self.refused - self.asked
            missing = [one.name for one in step.calls if is_refused or one.name not in bound]
            if not missing:
                return step.calls
            if "switch_mode" in bound and self.position not in self.asked:
                why = f"{step.line!r} needs {missing[0]}."
                return (Call("switch_mode", {"mode_slug": step.target_mode, "reason": why}),)
            self._close(_NOT_POSSIBLE)
        return ()

    def report(self) -> str:
        return "\n".join(["Here is how it went:", *self.results])


_NOT_POSSIBLE = "refused: this mode has no tool for it."


def _short(answer: ToolMessage) -> str:
    text = " ".join(remove_marks(answer.text).split())
    text = text if len(text) <= SHORT else f"{text[:SHORT]}..."
    return f"refused: {text}" if answer.status == "error" else text


def _message(messages: Sequence[BaseMessage], text: str, calls: tuple[Call, ...]) -> AIMessage:
    # Ids must differ within a thread, and be the same when it is replayed.
    number = sum(isinstance(message, AIMessage) for message in messages)
    return AIMessage(
        text,
        tool_calls=[
            {"name": call.name, "args": call.args, "id": f"offline_{number}_{index}"}
            for index, call in enumerate(calls)
        ],
        usage_metadata=_usage(messages, text, calls),
        response_metadata={"model_name": "offline"},
    )


def _usage(messages: Sequence[BaseMessage], text: str, calls: tuple[Call, ...]) -> UsageMetadata:
    """Tokens as words: what a tokenizer would say is not known here."""
    given = sum(len(message.text.split()) for message in messages)
    answered = len(text.split()) + sum(len(str(call.args).split()) for call in calls)
    return UsageMetadata(input_tokens=given, output_tokens=answered, total_tokens=given + answered)


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """The message in pieces: word by word, call by call, the usage last."""
    for word in re.findall(r"\s*\S+\s*$|\s*\S+", message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    for index, call in enumerate(message.tool_calls):
        piece = tool_call_chunk(
            name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index
        )
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )
