"""LangGraph's auth hooks: with ``AUTH_TOKEN`` set, a client without a token gets nothing.

``langgraph.json`` names them, and turns off the server's bypass for Studio. The SDK's in-process
client skips them: never use it on behalf of a request.
"""

import asyncio
import time
from hmac import compare_digest
from typing import Annotated, Any
from uuid import UUID, uuid5

from langgraph.types import Command
from langgraph_sdk import Auth
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from modeshift.configuration.loading import get_served, get_served_cache
from modeshift.configuration.workspaces import ANYBODY
from modeshift.modes.errors import InvalidInputError, describe_misfit
from modeshift.modes.plain_data import JsonObject
from modeshift.project import GRAPH
from modeshift.server.checkpointer import CLONE, database, is_opened, owners_of, settings
from modeshift.storage.kept_threads import NAMESPACE
from modeshift.threads.checks import check_input, check_update
from modeshift.threads.deps import AgentDeps
from modeshift.workarounds.langgraph_runtime import has_run

SERVED = str(uuid5(UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), GRAPH))
"""The id of the server's own assistant, as ``langgraph_api.graph`` makes it."""
auth = Auth()
Filter = Auth.types.FilterType | None
HTTPException = Auth.exceptions.HTTPException
BUSY = "thread {} has a run: wait until it has ended, or cancel it"
SECONDS = 2
"""How long a request waits for a thread whose run has ended: its task ends just after it."""
TOKENS = settings.tokens
"""Users by token; empty if no token is asked for."""


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The user of the token; raises a 401."""
    if not TOKENS:
        return {"identity": ANYBODY, "is_authenticated": False}
    scheme, _, sent = (authorization or "").partition(" ")
    names = [
        name for token, name in TOKENS.items() if compare_digest(token.encode(), sent.encode())
    ]
    if scheme.lower() != "bearer" or not names:
        raise HTTPException(401, "send 'Authorization: Bearer <token>', as in AUTH_TOKEN")
    return {"identity": names[0], "is_authenticated": True}


def _add_owner(ctx: Auth.types.AuthContext, value: JsonObject) -> dict[str, str] | None:
    if not TOKENS:
        return None
    owner = {"owner": ctx.user.identity}
    # In place: the server keeps using the mapping that it passed.
    value.setdefault("metadata", {}).update(owner)
    return owner


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: JsonObject) -> Filter:
    """A thread belongs to its creator: nobody else can find it, read it or run in it."""
    return _add_owner(ctx, value)


@auth.on.threads.create
async def own_new_threads(ctx: Auth.types.AuthContext, value: Any) -> Filter:
    """Another user's thread cannot be created again once the server lost its list; raises a 409."""
    await _refuse_others_thread(ctx, value.get("thread_id"))
    # Otherwise the first run adds it, and a list that was written before that shows no state.
    value.setdefault("metadata", {}).setdefault("graph_id", GRAPH)
    return _add_owner(ctx, value)


@auth.on.threads.create_run
async def own_runs(ctx: Auth.types.AuthContext, value: Any) -> Filter:
    """A run belongs to its thread's owner; raises a 409 or 422."""
    _refuse_rollback(value.get("multitask_strategy"))
    thread, user = str(value.get("thread_id") or ""), ctx.user.identity
    from langgraph_api.store import get_store  # noqa: PLC0415  # which Aegra has not

    await check_run(value["kwargs"], (await get_served(thread, user, await get_store())).deps)
    if value.get("if_not_exists") == "create":
        await _refuse_others_thread(ctx, value.get("thread_id"))
    if not value["kwargs"].get("temporary"):
        value["kwargs"]["durability"] = "sync"  # an approval is stored before the call begins
    value["metadata"].update(CLONE)
    return _add_owner(ctx, value)


@auth.on.threads.update
async def own_updates(ctx: Auth.types.AuthContext, value: Any) -> Filter:
    """Only the owner may update a thread, or cancel a run in it; raises a 422."""
    _refuse_rollback(value.get("action"))
    return _add_owner(ctx, value)


@auth.on.threads.delete
async def own_deletions(ctx: Auth.types.AuthContext, value: Any) -> Filter:
    """Only the owner may delete a thread, as a whole, and at rest; raises a 409 or 422."""
    if value.get("run_id") is not None:
        raise HTTPException(422, "a run cannot be deleted; delete the thread")
    await get_served_cache()  # deletes what else is stored of the thread
    thread, until = str(value.get("thread_id")), time.monotonic() + SECONDS
    while has_run(thread):  # it would go on without the thread, and write into it
        if time.monotonic() > until:
            raise HTTPException(409, BUSY.format(thread))
        await asyncio.sleep(0.02)
    return _add_owner(ctx, value)


async def _refuse_others_thread(ctx: Auth.types.AuthContext, thread_id: object) -> None:
    if not TOKENS or thread_id is None or not is_opened():
        return
    owners = await owners_of(database, str(thread_id))
    if owners and owners - {None} != {ctx.user.identity}:
        raise HTTPException(409, f"thread {thread_id} is another user's, or made without a token")


def _refuse_rollback(action: str | None) -> None:
    if action == "rollback":
        raise HTTPException(
            422,
            "'rollback' is not possible with this checkpointer, and the thread would hang; "
            "use 'interrupt'",
        )


async def check_run(run: JsonObject, deps: AgentDeps) -> None:
    """Check what the graph would refuse, before there is a run."""
    check_config(run.get("config"))
    if run.get("input") is not None:
        check_input(deps, run["input"])
    if command := run.get("command"):
        written: object = Command(update=command.get("update"), goto=command.get("goto") or ())
        check_update(deps, written)


@auth.on.crons
async def own_crons(ctx: Auth.types.AuthContext, value: JsonObject) -> Filter:
    """A cron belongs to its creator; raises a 422."""
    payload = value.get("payload") or {}
    _refuse_rollback(payload.get("multitask_strategy"))
    check_config(payload.get("config"), payload.get("context"))
    return _add_owner(ctx, value)


@auth.on.assistants
async def own_assistants(ctx: Auth.types.AuthContext, value: JsonObject) -> Any:
    """An assistant belongs to its creator; all may use the server's own, and none may change them.

    Raises a 403 or 422.
    """
    check_config(value.get("config"), value.get("context"))
    if str(value.get("assistant_id")) == SERVED and ctx.action in ("update", "delete"):
        raise HTTPException(403, "the server's own assistant cannot be changed")
    if not TOKENS:
        return None
    if ctx.action in ("read", "search"):
        return {"$or": [{"owner": ctx.user.identity}, {"created_by": "system"}]}
    if (value.get("metadata") or {}).get("created_by") == "system":
        raise HTTPException(403, "created_by 'system' is for the server's own assistants")
    return _add_owner(ctx, value)


@auth.on.store
async def own_store(ctx: Auth.types.AuthContext, value: JsonObject) -> None:
    """Each user has a namespace of his own, below his name; raises a 403 for the mailbox's."""
    if TOKENS:
        value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
    if NAMESPACE in (value.get("namespace") or ())[:1]:
        raise HTTPException(403, f"the namespace {NAMESPACE!r} is the server's own")


Count = Annotated[int, Field(ge=1)]


class _Configurable(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]  # as pydantic wants it
    checkpoint_id: str | None
    checkpoint_ns: str | None
    checkpoint_map: dict[str, str]


class _Config(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # as above
    tags: list[str]
    metadata: dict[str, object] | None
    callbacks: None
    run_name: str | None
    recursion_limit: Count
    max_concurrency: Count | None
    configurable: _Configurable


_CONFIG = TypeAdapter(_Config)


def check_config(config: Any, context: object = None) -> None:
    """Raise ``InvalidInputError``. The server uses a ``context`` as the ``configurable``.

    It merges the config of a run, a cron or an assistant into its thread's, where ``callbacks``, or
    a ``metadata`` that is no object, would leave a thread that cannot be read.
    """
    values = {**config, "configurable": context} if context else config or {}
    try:
        _CONFIG.validate_python(values, strict=True)
    except ValidationError as error:
        raise InvalidInputError(f"config does not fit: {describe_misfit(error)}") from error
    if names := [name for name in values.get("configurable", {}) if name.startswith("__pregel")]:
        raise InvalidInputError(f"config does not fit: {names[0]!r} is LangGraph's own")
