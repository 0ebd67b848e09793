"""``agent``: the graph as Aegra asks for it, at every run and every look at a thread.

Aegra executes this file beside the package, as a module of another name.
"""

from typing import Any

from fastapi import HTTPException
from langchain_core.runnables import RunnableConfig
from langgraph_sdk.runtime import ServerRuntime
from typing_extensions import override

from modeshift.aegra.claims import get_claims
from modeshift.aegra.door import CLAIM
from modeshift.graph.configuration.loading import get_served
from modeshift.graph.entry.compiled import Agent, Updates
from modeshift.modes.errors import UserError


class UpdatedAgent(Agent):
    """Refuses an update with a 422, of which Aegra would make a 500."""

    @override
    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Updates
    ) -> RunnableConfig:
        try:
            return await super().abulk_update_state(config, supersteps)
        except UserError as error:
            raise HTTPException(422, str(error)) from error


async def agent(config: dict[str, Any], runtime: ServerRuntime) -> Agent:
    """As modes and settings are now; a run gets it when its thread has no other run."""
    served = (await get_served()).agent
    if runtime.access_context == "threads.update":
        return UpdatedAgent(**vars(served))
    if runtime.access_context == "threads.create_run":
        here = config["configurable"]
        await get_claims().begin_run(here["thread_id"], here["run_id"], here.get(CLAIM))
    return served
