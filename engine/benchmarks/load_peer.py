"""What ``load.py`` compares with: an agent of LangChain's own parts, for LangGraph's dev server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override


class WritingModel(BaseChatModel):
    """Answers a message with one edit, and the edit's result with "done"."""

    @property
    @override
    def _llm_type(self) -> str:
        return "writing"

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
        path = messages[-1].text.removeprefix("write ").partition(":")[0]
        call = {"name": "write_file", "args": {"path": path, "content": "hello"}, "id": "call_1"}
        is_result = messages[-1].type == "tool"
        message = AIMessage("done") if is_result else AIMessage("", tool_calls=[call])
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


@tool
def write_file(path: str, content: str) -> str:
    """Write a file in the workspace."""
    Path(os.environ["WORKSPACE"], path).write_text(content)
    return f"wrote {path}"


agent = create_agent(
    WritingModel(),
    [write_file],
    system_prompt="You are a coding agent.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"write_file": True})],
)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """LangGraph's own, for a server that keeps its threads in SQLite."""
    async with AsyncSqliteSaver.from_conn_string(os.environ["CHECKPOINTS"]) as saver:
        await saver.setup()
        yield saver
