"""The agents that are compared: this one, and what a user would build instead.

All have the same model, the same tools on the same workspace, and no gate that
needs a person for the call that the model makes.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ModelResponse,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from graph.agent import build as build_agent
from modeshift.models.loading import Models
from modeshift.storage.opening import open_database
from modeshift.storage.threads import open_saver, open_store, prepare_tables
from modeshift.threads.deps import AgentDeps, StartedCalls
from modeshift.threads.journal import Journal
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog

Saver = BaseCheckpointSaver[Any] | None
AnyAgent = Pregel[Any, Any, Any, Any]
Build = Callable[[BaseChatModel, Path, Saver], AnyAgent]
Open = Callable[[BaseChatModel, Path, Path | None], AbstractAsyncContextManager[AnyAgent]]
"""A contender in a workspace, with its threads in a folder, or in memory alone."""
DATABASE = "threads.sqlite"
"""The name of the file in the folder."""


def build_modeshift(
    model: BaseChatModel,
    workspace: Path,
    saver: Saver,
    store: BaseStore,
    started_calls: StartedCalls | None = None,
) -> AnyAgent:
    """This project as the server runs it: the host may set a mode at any time."""
    catalog = load_catalog("code")
    toolbox = build_toolbox(Workspace(workspace), catalog)
    started_calls = started_calls or StartedCalls()
    deps = AgentDeps(catalog, toolbox, Models(model), started_calls=started_calls)
    agent = build_agent(deps, saver)
    agent.store = store
    return agent


@asynccontextmanager
async def modeshift(
    model: BaseChatModel, workspace: Path, folder: Path | None
) -> AsyncIterator[AnyAgent]:
    """With the store, the checkpointer and the journal that the server has."""
    if folder is None:
        yield build_modeshift(model, workspace, None, InMemoryStore())
        return
    database = open_database("", folder / DATABASE)
    await prepare_tables(database)
    started_calls = StartedCalls(Journal(database, folder))
    async with open_saver(database) as saver, open_store(database) as store:
        yield build_modeshift(model, workspace, saver, store, started_calls)
    await database.close()


@asynccontextmanager
async def _open_peer(
    build: Build, model: BaseChatModel, workspace: Path, folder: Path | None
) -> AsyncIterator[AnyAgent]:
    if folder is None:
        yield build(model, workspace, None)
        return
    async with AsyncSqliteSaver.from_conn_string(str(folder / DATABASE)) as saver:
        await saver.setup()
        yield build(model, workspace, saver)


class DeltaState(MessagesState):
    """The messages as LangGraph's own ``DeltaChannel`` keeps them: what is new at each step."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def state_graph(
    model: BaseChatModel,
    workspace: Path,
    saver: Saver,
    state: type[MessagesState] = MessagesState,
) -> AnyAgent:
    """LangGraph's own parts, and no modes, no gates: the floor."""
    tools = _tools(workspace)
    bound = model.bind_tools(tools)
    prompt = SystemMessage("You are a coding agent.")

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke([prompt, *state["messages"]])]}

    graph = StateGraph(state)
    graph.add_node("model", call_model, input_schema=state)
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


class DeltaAgentState(AgentState[Any]):
    """``create_agent``'s state with a ``DeltaChannel`` for its messages."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def langchain_agent(
    model: BaseChatModel,
    workspace: Path,
    saver: Saver,
    state: type[AgentState[Any]] | None = None,
) -> AnyAgent:
    """``create_agent`` with a mode middleware and the human-in-the-loop middleware."""
    asks = HumanInTheLoopMiddleware(
        interrupt_on={"write_file": True, "edit_file": True, "execute_command": True}
    )
    return create_agent(
        model,
        _tools(workspace),
        middleware=[ModeMiddleware(), asks],
        checkpointer=saver,
        state_schema=state,
    )


def _tools(workspace: Path) -> list[Any]:
    toolbox = build_toolbox(Workspace(workspace), load_catalog())
    return [toolbox[spec.name].runnable for spec in toolbox.specs if spec.group is not None]


OURS = "modeshift"
CONTENDERS: dict[str, Open] = {
    OURS: modeshift,
    "StateGraph + ToolNode": partial(_open_peer, state_graph),
    "the same, DeltaChannel": partial(_open_peer, partial(state_graph, state=DeltaState)),
    "create_agent": partial(_open_peer, langchain_agent),
    "create_agent, Delta": partial(_open_peer, partial(langchain_agent, state=DeltaAgentState)),
}
REFERENCE = "create_agent"
