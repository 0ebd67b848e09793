"""``app`` and ``follow_thread``: our own routes beside Aegra's; a token is asked for on all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml
from aegra_api.core.database import db_manager
from fastapi import FastAPI, HTTPException
from fastapi.exception_handlers import http_exception_handler
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from modeshift.aegra.run_claims import explain
from modeshift.modes.errors import UserError
from modeshift.server import thread_modes
from modeshift.server.checkpointer import database
from modeshift.server.operations import serving_well
from modeshift.server.routes import ROUTES


@asynccontextmanager
async def _serve(app: FastAPI) -> AsyncIterator[None]:
    app.state.store = db_manager.get_store()
    async with serving_well():
        yield


_MARK = """
    SELECT updated_at, (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)
    FROM thread WHERE thread_id = :thread
"""


async def follow_thread(request: Request) -> Response:
    """An event when something has changed in the thread, and the end.

    ---
    summary: Wait for a change of the thread
    tags: [Modes]
    """
    thread = request.path_params["id"]
    shown = await thread_modes.call_thread(request, "GET")
    if not shown.is_success:
        return thread_modes.pass_on(shown)

    async def wait() -> AsyncIterator[str]:
        first = now = await database.execute(_MARK, thread=thread)
        while now == first:
            yield ": nothing yet\n\n"
            await asyncio.sleep(1)
            now = await database.execute(_MARK, thread=thread)
        yield "event: state_update\ndata: {}\n\n"

    return StreamingResponse(wait(), media_type="text/event-stream")


FAILED = 500


async def _explain(request: Request, error: Any) -> Response:
    """Say what a client can correct, and that the database is gone: Aegra makes both a 500."""
    problem = error if isinstance(error, UserError) else error.__cause__ or error
    is_explained = isinstance(problem, UserError) or error.status_code == FAILED
    answer = await explain(problem) if is_explained else None
    return answer or await http_exception_handler(request, error)


app = FastAPI(
    title="Modeshift on Aegra",
    lifespan=_serve,
    exception_handlers={UserError: _explain, HTTPException: _explain},
)
_STREAM = Route("/threads/{id}/stream", follow_thread, methods=["GET"])
for route in (*ROUTES, _STREAM):
    described = yaml.safe_load((route.endpoint.__doc__ or "").partition("---")[2])
    options = {"methods": [*(route.methods or ())], "openapi_extra": described}
    app.add_api_route(route.path, route.endpoint, **options)
