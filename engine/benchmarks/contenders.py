"""The agents that are compared: this one, and what a user would build instead.

All have the same model, the same tools on the same workspace, and no gate that
needs a person for the call that the model makes.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NotRequired

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ModelResponse,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from graph.agent import build as build_agent
from modeshift import Agent
from modeshift.models.loading import Models
from modeshift.storage.threads import SqliteStore
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog

Saver = BaseCheckpointSaver[Any] | None
Build = Callable[[BaseChatModel, Path, Saver], Pregel[Any, Any, Any, Any]]


def modeshift(model: BaseChatModel, workspace: Path, saver: Saver) -> Pregel[Any, Any, Any, Any]:
    """This project, as it is."""
    return _build_modeshift(model, workspace, saver)


def modeshift_served(
    model: BaseChatModel, workspace: Path, saver: Saver
) -> Pregel[Any, Any, Any, Any]:
    """As the server and the editor's agent run it: the host may set a mode at any time."""
    agent = _build_modeshift(model, workspace, saver)
    agent.store = (
        SqliteStore(saver.conn) if isinstance(saver, AsyncSqliteSaver) else InMemoryStore()
    )
    return agent


def _build_modeshift(model: BaseChatModel, workspace: Path, saver: Saver) -> Agent:
    catalog = load_catalog("code")
    toolbox = build_toolbox(Workspace(workspace), catalog)
    return build_agent(AgentDeps(catalog, toolbox, Models(model)), saver)


def state_graph(model: BaseChatModel, workspace: Path, saver: Saver) -> Pregel[Any, Any, Any, Any]:
    """LangGraph's own parts, and no modes, no gates: the floor."""
    tools = _tools(workspace)
    bound = model.bind_tools(tools)
    prompt = SystemMessage("You are a coding agent.")

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke([prompt, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


class ModeState(AgentState[Any]):
    """``create_agent``'s state, and the mode."""

    mode: NotRequired[str]


class ModeMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Modes as one would add them to ``create_agent``: filter the tools, set the prompt."""

    state_schema = ModeState

    def __init__(self) -> None:
        catalog = load_catalog("code")
        self.prompts = {slug: SystemMessage(catalog[slug].role_definition) for slug in catalog}
        self.names = {
            "ask": {"read_file", "list_files", "search_files"},
            "code": {
                *("read_file", "list_files", "search_files"),
                *("write_file", "edit_file", "execute_command"),
            },
        }

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Narrow the tools and set the prompt of the mode."""
        mode = str(request.state.get("mode", "code"))
        names = self.names[mode]
        tools = [tool for tool in request.tools if getattr(tool, "name", "") in names]
        return await handler(request.override(tools=tools, system_message=self.prompts[mode]))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Refuse what the mode does not have."""
        if request.tool_call["name"] not in self.names[request.state.get("mode", "code")]:
            raise ValueError(request.tool_call["name"])
        return await handler(request)


def langchain_agent(
    model: BaseChatModel, workspace: Path, saver: Saver
) -> Pregel[Any, Any, Any, Any]:
    """``create_agent`` with a mode middleware and the human-in-the-loop middleware."""
    asks = HumanInTheLoopMiddleware(
        interrupt_on={"write_file": True, "edit_file": True, "execute_command": True}
    )
    return create_agent(
        model, _tools(workspace), middleware=[ModeMiddleware(), asks], checkpointer=saver
    )


def _tools(workspace: Path) -> list[Any]:
    toolbox = build_toolbox(Workspace(workspace), load_catalog())
    return [toolbox[spec.name].runnable for spec in toolbox.specs if spec.group is not None]


CONTENDERS: dict[str, Build] = {
    "modeshift": modeshift,
    "modeshift, served": modeshift_served,
    "StateGraph + ToolNode": state_graph,
    "create_agent": langchain_agent,
}
REFERENCE = "create_agent"
