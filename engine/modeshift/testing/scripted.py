"""``ScriptedModel``: gives the answers of a script, whatever it is asked."""

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field
from typing_extensions import override

Call = tuple[str, dict[str, Any]]
"""A tool's name, and the arguments."""
ScriptStep = Sequence[Call] | str | Exception
"""The calls of an answer, its words, or how the model fails."""


class Asked:
    """One request to the model: the messages, and the names of the tools bound."""

    def __init__(self, messages: Sequence[BaseMessage], tools: frozenset[str]) -> None:
        self.messages = list(messages)
        self.tools = tools


class ScriptedModel(BaseChatModel):
    """Gives ``answers`` in order, then says ``done``; keeps what it was asked."""

    answers: list[Any]
    """``AIMessage``, or what is raised."""
    asked: list[Any] = Field(default_factory=list)

    @classmethod
    def of(cls, *steps: ScriptStep) -> Self:
        """One that takes one step after the other.

        The ids of calls are ``call_0``, ``call_1``, ... in the first, ``step1_0``, ... in the next.
        """
        return cls(answers=[_answer(*step) for step in enumerate(steps)])

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        names = frozenset(tool["function"]["name"] for tool in kwargs.get("tools", ()))
        self.asked.append(Asked(messages, names))
        number = len(self.asked) - 1
        answer = self.answers[number] if number < len(self.answers) else AIMessage("done")
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(deep=True))])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)


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
