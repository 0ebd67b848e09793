"""``ScriptedModel``: gives the answers of a script, whatever it is asked."""

from collections.abc import Sequence
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
