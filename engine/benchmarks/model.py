"""A model that answers at once: it calls one tool so many times, then says it is done."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from typing_extensions import override

from modeshift.models.offline import LocalModel


class InstantModel(LocalModel):
    """Reads ``a.txt`` ``steps`` times. The same for every contender."""

    steps: int

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind()

    @override
    def answer(self, messages: Sequence[BaseMessage], tools: frozenset[str]) -> AIMessage:
        done = sum(message.type == "ai" for message in messages)
        call = {"name": "read_file", "args": {"path": "a.txt"}, "id": f"call_{done}"}
        return AIMessage("", tool_calls=[call]) if done < self.steps else AIMessage("done")
