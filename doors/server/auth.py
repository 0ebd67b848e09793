"""LangGraph's auth hook: with ``AUTH_TOKEN`` set, who has no token gets nothing.

``langgraph.json`` names it, and turns off the bypass that the server has for Studio. The
SDK's in-process client skips the hook: never use it on behalf of a request.
"""

import asyncio
from hmac import compare_digest
from typing import Any

from langgraph_sdk import Auth

from doors.server.checkpointer import owners_of
from doors.server.gate import IS_INNER
from graph.settings import load_settings

ANYBODY = "anybody"
GRAPH = "agent"  # its name in langgraph.json
auth = Auth()
_settings = load_settings()
TOKENS = _settings.tokens
"""Names by token; none where no token is asked for."""


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The user whose token it is; raises a 401."""
    if not TOKENS:
        return {"identity": ANYBODY, "is_authenticated": False}
    scheme, _, given = (authorization or "").partition(" ")
    found = [
        name for token, name in TOKENS.items() if compare_digest(token.encode(), given.encode())
    ]
    if scheme.lower() != "bearer" or not found:
        raise Auth.exceptions.HTTPException(
            status_code=401, detail="send 'Authorization: Bearer <token>', as in AUTH_TOKEN"
        )
    return {"identity": found[0], "is_authenticated": True}


def _owned(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, str] | None:
    if not TOKENS:
        return None
    owner = {"owner": ctx.user.identity}
    # In place: the server goes on with the mapping that it has, and not with a new one.
    value.setdefault("metadata", {}).update(owner)
    return owner


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """A thread belongs to whoever made it: nobody else finds it, reads it or runs in it."""
    return _owned(ctx, value)


@auth.on.threads.create
async def own_new_threads(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads, also where the list of them is lost and the checkpoints are not.

    Raises a 409.
    """
    await _nobody_elses(ctx, value.get("thread_id"))
    # Else it comes with the first run, and a list that was written before shows no state.
    value.setdefault("metadata", {}).setdefault("graph_id", GRAPH)
    return _owned(ctx, value)


@auth.on.threads.create_run
async def own_runs(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads; raises a 409 or 422."""
    _no_rollback(value.get("multitask_strategy"))
    if IS_INNER.get():
        _only_messages(value["kwargs"])
    if value.get("if_not_exists") == "create":
        await _nobody_elses(ctx, value.get("thread_id"))
    return _owned(ctx, value)


@auth.on.threads.update
async def own_updates(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads; canceling a run is an update, too. Raises a 422."""
    _no_rollback(value.get("action"))
    return _owned(ctx, value)


async def _nobody_elses(ctx: Auth.types.AuthContext, thread_id: Any) -> None:
    if not TOKENS or thread_id is None:
        return
    owners = await asyncio.to_thread(owners_of, _settings.checkpoints, str(thread_id))
    if owners and owners - {None} != {ctx.user.identity}:
        raise Auth.exceptions.HTTPException(
            status_code=409, detail=f"thread {thread_id} is another user's, or made without a token"
        )


def _no_rollback(action: str | None) -> None:
    if action == "rollback":
        raise Auth.exceptions.HTTPException(
            status_code=422,
            detail="'rollback' is not possible with the SQLite checkpointer, and the thread would "
            "hang; use 'interrupt'",
        )


def _only_messages(run: dict[str, Any]) -> None:
    """Refuses what is the host's to say: a model calls here."""
    given = run.get("input") or {}
    if not isinstance(given, dict) or given.keys() - {"messages"}:
        problem = "only 'messages' may be given; mode and approvals are the host's to say"
    elif run.get("command"):
        problem = "a question that waits is answered by a person, and not here"
    elif run.get("context"):
        problem = "no context may be given"
    else:
        return
    raise Auth.exceptions.HTTPException(status_code=422, detail=f"refused: {problem}")


@auth.on.crons
async def own_crons(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads; raises a 422."""
    _no_rollback((value.get("payload") or {}).get("multitask_strategy"))
    return _owned(ctx, value)


@auth.on.assistants
async def own_assistants(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads; those that the server makes for its graphs are everybody's, to use as they are.

    Raises a 403.
    """
    if not TOKENS:
        return None
    if ctx.action in ("read", "search"):
        return {"$or": [{"owner": ctx.user.identity}, {"created_by": "system"}]}
    if (value.get("metadata") or {}).get("created_by") == "system":
        raise Auth.exceptions.HTTPException(
            status_code=403, detail="created_by 'system' is for the server's own assistants"
        )
    return _owned(ctx, value)


@auth.on.store
async def own_store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """What one user stores is below that user's name."""
    if TOKENS:
        value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
