"""``agent``: the graph as Aegra asks for it, at every run and every look at a thread.

Aegra executes this file beside the package, as a module of another name.
"""

from typing import Any

from langgraph_sdk.runtime import ServerRuntime

from modeshift.aegra.claims import get_claims
from modeshift.aegra.door import CLAIM
from modeshift.graph.configuration.loading import get_served
from modeshift.graph.entry.compiled import Agent


async def agent(config: dict[str, Any], runtime: ServerRuntime[Any]) -> Agent:
    """As modes and settings are now; a run gets it when its thread has no other run."""
    if runtime.access_context == "threads.create_run":
        here = config["configurable"]
        await get_claims().begin_run(here["thread_id"], here["run_id"], here.get(CLAIM))
    return (await get_served()).agent
