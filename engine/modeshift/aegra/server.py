"""``app``: Aegra behind the dev server's gate; what ``make serve`` runs in each process."""

from aegra_api.core.auth_middleware import get_auth_instance
from aegra_api.main import app
from starlette.requests import Request
from starlette.responses import JSONResponse

from modeshift.aegra.auth import auth
from modeshift.aegra.claims import get_claims
from modeshift.aegra.refusals import Refusals
from modeshift.aegra.run_claims import RunClaims
from modeshift.aegra.shared_answers import BindSharedAnswers
from modeshift.graph.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.server.app import Page
from modeshift.server.gate import Gate
from modeshift.server.operations import Operations
from modeshift.server.thread_ids import OneSpelling

if get_auth_instance() is not auth:  # Aegra goes on without, and everybody is the same user
    raise ConfigurationError("Aegra has not taken modeshift.aegra.auth: nothing is served")


async def _say_ok(_: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


app.add_route("/ok", _say_ok)  # here, as Aegra asks for no token then
_settings = load_settings()
# The last one is the outermost: Aegra's own, which make text/plain JSON, come after the gate.
app.add_middleware(BindSharedAnswers, names_questions=not _settings.bound_answers)
app.add_middleware(OneSpelling)
app.add_middleware(RunClaims, claims=get_claims())
app.add_middleware(Refusals)
app.add_middleware(Page)
app.add_middleware(Operations)
app.add_middleware(Gate, origins=_settings.allowed_origins, has_token=bool(_settings.tokens))
