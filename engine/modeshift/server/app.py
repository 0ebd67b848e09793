"""``Page`` and the other middleware that ``langgraph.json`` mounts around the server's routes."""

import gzip
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from modeshift.modes.errors import UserError
from modeshift.server.answers import BindAnswers, OneSpelling
from modeshift.server.checkpointer import settings
from modeshift.server.gate import Gate
from modeshift.server.operations import Operations, serving_well
from modeshift.server.routes import ROUTES
from modeshift.threads.stopping import stop
from modeshift.workarounds.langgraph_runtime import start_runs_at_once

ADDRESS = "/app"
FOLDER = Path(__file__).parent.parent / "page"
_PATH = re.compile(rf"{ADDRESS}(?:/([a-z]+\.(?:js|css|svg)))?")
_HEADERS = {
    # The page may use its own scripts and styles, its own server, and images in messages. Nobody
    # may frame it, and it parses no text as HTML.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; trusted-types 'none'; require-trusted-types-for 'script'",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


_COMMENT = re.compile(rb"^ *//.*$", re.MULTILINE)


@cache
def _load(name: str) -> Response | None:
    """The file as it is sent: compressed, and a script without its lines of comments."""
    file = FOLDER / name
    if not file.is_file():
        return None
    data = file.read_bytes()
    body = gzip.compress(_COMMENT.sub(b"", data) if file.suffix == ".js" else data, mtime=0)
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {**_HEADERS, "Content-Encoding": "gzip", "ETag": etag}
    return Response(body, headers=headers, media_type=guess_type(name)[0])


def _send(loaded: Response, asked: Headers) -> Response:
    if asked.get("if-none-match") == loaded.headers["etag"]:
        return Response(status_code=304, headers=_HEADERS | {"ETag": loaded.headers["etag"]})
    if "gzip" in asked.get("accept-encoding", ""):
        return loaded
    plain = gzip.decompress(loaded.body)
    return Response(plain, headers=_HEADERS, media_type=loaded.media_type)


@dataclass(frozen=True)
class Page:
    """ASGI middleware, behind the gate: the page, and ``GET /`` for a browser; all else goes on."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser; who asks ``/`` for JSON or anything gets the server's answer."""
        answer = await self._answer(scope) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    async def _answer(self, scope: Scope) -> ASGIApp | None:
        if scope["method"] not in ("GET", "HEAD"):
            return None
        if scope["path"] == "/" and "text/html" in Request(scope).headers.get("accept", ""):
            return RedirectResponse(ADDRESS, headers={"Vary": "Accept"})
        if (match := _PATH.fullmatch(scope["path"])) is None:
            return None
        answer = _load(match[1] or "index.html")
        if answer is None:  # there is no such file: the server says so
            return None
        return _send(answer, Request(scope).headers)


@asynccontextmanager
async def _serve(_: Starlette) -> AsyncIterator[None]:
    start_runs_at_once(lambda: stop.is_due)
    async with serving_well():
        yield


async def _explain(_: Request, error: Exception) -> Response:
    """Answer an error that the client can correct with a 422."""
    return JSONResponse({"detail": str(error)}, 422)


app = Starlette(
    routes=[*ROUTES],
    lifespan=_serve,
    exception_handlers={UserError: _explain},
    middleware=[
        Middleware(Gate, origins=settings.allowed_origins, has_token=bool(settings.tokens)),
        Middleware(Operations),
        Middleware(Page),
        Middleware(OneSpelling),
        Middleware(BindAnswers, names_questions=not settings.bound_answers),
    ],
)
