"""``app``: Aegra behind the dev server's gate; what ``make serve`` runs in each process."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aegra_api.core.auth_middleware import get_auth_instance
from aegra_api.main import app
from starlette.requests import Request
from starlette.responses import JSONResponse

from modeshift.aegra.auth import auth
from modeshift.aegra.claims import BindSharedAnswers, get_claims
from modeshift.aegra.run_claims import Refusals, RunClaims
from modeshift.modes.errors import ConfigurationError, StorageError
from modeshift.server.answers import OneSpelling
from modeshift.server.app import Page
from modeshift.server.checkpointer import database, settings
from modeshift.server.gate import Gate
from modeshift.server.operations import Operations

__all__ = ["app"]
if get_auth_instance() is not auth:  # Aegra goes on without it, all as the same user
    raise ConfigurationError("Aegra has not taken modeshift.aegra.auth: nothing is served")


_log = logging.getLogger("modeshift")
_lifespan = app.router.lifespan_context


@asynccontextmanager
async def _serve(app: object) -> AsyncIterator[None]:
    """Start Aegra once there is a database; where that fails, the other processes end too."""
    await _wait_for_database()
    async with _lifespan(app):
        yield
    await get_claims().end()  # or the next process would find these threads taken


async def _wait_for_database() -> None:
    try:
        await database.check()
        return
    except StorageError as error:
        _log.warning("waits for the database: %s", error)
    # Until there is a database, a signal ends the process at once: no run has to end first.
    ends = (signal.SIGTERM, signal.SIGINT)
    handlers = [(number, signal.signal(number, signal.SIG_DFL)) for number in ends]
    while True:
        await asyncio.sleep(1)
        with suppress(StorageError):
            await database.check()
            break
    for number, handler in handlers:
        signal.signal(number, handler)


app.router.lifespan_context = _serve


async def _say_ok(_: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


app.add_route("/ok", _say_ok)  # here, as Aegra asks for no token then
# The last one is the outermost: Aegra's own, which make text/plain JSON, come after the gate.
app.add_middleware(BindSharedAnswers, names_questions=not settings.bound_answers)
app.add_middleware(OneSpelling)
app.add_middleware(RunClaims, claims=get_claims())
app.add_middleware(Refusals)
app.add_middleware(Page)
app.add_middleware(Operations)
app.add_middleware(Gate, origins=settings.allowed_origins, has_token=bool(settings.tokens))
