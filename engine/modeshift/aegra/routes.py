"""``app``: our own routes, to which Aegra adds its own, and a token is asked for on all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse

from modeshift.aegra.claims import get_claims
from modeshift.modes.errors import UserError
from modeshift.server import answers, markdown, thread_modes
from modeshift.tools.processes.background import end_every_command


@asynccontextmanager
async def _serve(_: FastAPI) -> AsyncIterator[None]:
    await get_claims().prepare()
    yield
    await end_every_command()


async def _explain(_: Request, error: Exception) -> JSONResponse:
    """What a client can mend is a 422."""
    return JSONResponse({"detail": str(error)}, 422)


app = FastAPI(title="Modeshift on Aegra", lifespan=_serve, exception_handlers={UserError: _explain})
for route in (*thread_modes.ROUTES, *answers.ROUTES, *markdown.ROUTES):
    app.add_api_route(route.path, route.endpoint, methods=[*(route.methods or ())], tags=["Modes"])
