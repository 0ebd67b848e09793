"""``end_subtask``: brings back the conversation that began the sub-task."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from graph.deps import AgentDeps
from graph.routing import Node, find_news, get_thread
from graph.state import State
from graph.subtasks.result import return_to_parent
from modes.errors import InvalidInputError


def end_subtask_node(deps: AgentDeps) -> Node:
    """Ends the sub-task; the conversation that began it goes on with the result."""

    async def end_subtask(state: State, config: RunnableConfig) -> dict[str, Any]:
        await deps.started_calls.background.end(get_thread(config))
        subtask, parents = state.get("subtask"), state.get("parents")
        if subtask is None or not parents:
            raise InvalidInputError("phase 'returning' without a sub-task in the state")
        since: State = {**state, "host_revision": parents[-1].get("host_revision", 0)}
        given = await find_news(deps, since, config)
        return return_to_parent(deps, state, subtask, parents, given)

    return end_subtask
