"""A model that answers at once: it calls one tool so many times, then says it is done."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from typing_extensions import override


class InstantModel(BaseChatModel):
    """Reads ``a.txt`` ``steps`` times. The same for every contender."""

    steps: int

    @property
    @override
    def _llm_type(self) -> str:
        return "instant"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind()

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        done = sum(message.type == "ai" for message in messages)
        call = {"name": "read_file", "args": {"path": "a.txt"}, "id": f"call_{done}"}
        message = AIMessage("", tool_calls=[call]) if done < self.steps else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages)
