"""``check_new_run`` and other checks of the dev server, in the form in which Aegra asks.

Aegra itself keeps users' threads, runs, crons, assistants and stored items apart.
"""

from collections.abc import Mapping
from typing import Any

from aegra_api.core.database import db_manager
from langgraph_sdk import Auth

from modeshift.configuration.loading import get_served
from modeshift.modes.plain_data import JsonObject
from modeshift.server import auth as dev

auth = Auth()


@auth.authenticate
async def authenticate_here(headers: Mapping[str, str]) -> Auth.types.MinimalUserDict:
    """The user of the token; raises a 401."""
    return await dev.authenticate(headers.get("authorization"))


@auth.on.threads.create_run
async def check_new_run(ctx: Auth.types.AuthContext, value: Any) -> None:
    """Raise a 422 for what the graph would refuse, before there is a run."""
    config = value.get("config") or {}
    for place in ("context", "checkpoint"):
        dev.check_config(config, value.get(place))
    thread, store = str(value.get("thread_id") or ""), db_manager.get_store()
    await dev.check_run(value, (await get_served(thread, ctx.user.identity, store)).deps)


@auth.on.crons
async def check_cron(ctx: Auth.types.AuthContext, value: Any) -> None:
    """Check the runs of a cron as ``check_new_run`` does."""
    await check_new_run(ctx=ctx, value=value)


@auth.on.assistants
async def check_assistant(ctx: Auth.types.AuthContext, value: JsonObject) -> None:  # noqa: ARG001
    """Raise a 422 for a config that does not fit."""
    dev.check_config(value.get("config") or {}, value.get("context"))
