"""LangGraph's auth hook: with ``AUTH_TOKEN`` set, who has no token gets nothing.

``langgraph.json`` names it, and turns off the bypass that the server has for Studio. The
SDK's in-process client skips the hook: never use it on behalf of a request.
"""

from hmac import compare_digest
from typing import Any

from langgraph_sdk import Auth

from graph.settings import load_settings

ANYBODY = "anybody"
auth = Auth()
TOKENS = load_settings().tokens
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


@auth.on.crons
async def own_crons(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """As threads."""
    return _owned(ctx, value)


@auth.on.store
async def own_store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """What one user stores is below that user's name."""
    if TOKENS:
        value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
