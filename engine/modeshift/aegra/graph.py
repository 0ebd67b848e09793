"""``agent``: the graph, which Aegra asks for at every run and every look at a thread.

Aegra executes this file beside the package, as a module of another name.
"""

from typing import Any

from langgraph_sdk.runtime import ServerRuntime

from modeshift.aegra.claims import CLAIM, get_claims
from modeshift.configuration.loading import get_served
from modeshift.configuration.workspaces import ANYBODY
from modeshift.threads.compiled import Agent


async def agent(config: dict[str, Any], runtime: ServerRuntime[Any]) -> Agent:
    """The agent with the present modes and settings; a run gets it when its thread is free."""
    here = config.get("configurable") or {}
    if runtime.access_context == "threads.create_run":
        await get_claims().begin_run(here["thread_id"], here["run_id"], here.get(CLAIM))
    thread, user = str(here.get("thread_id") or ""), runtime.user
    who = ANYBODY if user is None else user.identity
    return (await get_served(thread, who, runtime.store, enters=True)).agent
