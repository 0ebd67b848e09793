"""The middleware that ``langgraph.json`` mounts around the dev server's own routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from modeshift.graph.configuration.environment import load_settings
from modeshift.modes.errors import UserError
from modeshift.server import markdown, questions, thread_modes
from modeshift.server.bind_answers import BindAnswers
from modeshift.server.gate import Gate
from modeshift.server.page import Page
from modeshift.server.run_queue import start_runs_at_once
from modeshift.tools.processes.background import end_every_command


@asynccontextmanager
async def _serve(_: Starlette) -> AsyncIterator[None]:
    start_runs_at_once()
    yield
    await end_every_command()


async def _explain(_: Request, error: Exception) -> Response:
    """What a client can mend is a 422."""
    return JSONResponse({"detail": str(error)}, 422)


_settings = load_settings()
app = Starlette(
    routes=[*thread_modes.ROUTES, *questions.ROUTES, *markdown.ROUTES],
    lifespan=_serve,
    exception_handlers={UserError: _explain},
    middleware=[
        Middleware(Gate, origins=_settings.allowed_origins, has_token=bool(_settings.tokens)),
        Middleware(Page),
        Middleware(BindAnswers, names_questions=not _settings.bound_answers),
    ],
)
