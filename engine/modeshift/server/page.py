"""``Page``: the page for a browser at ``/app``: the files of ``doors/page``, as they are.

In front of the tokens: a browser sends none when it opens an address. The page asks for one.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

ADDRESS = "/app"
FOLDER = Path(__file__).parent.parent / "page"
_PATH = re.compile(rf"{ADDRESS}(?:/([a-z]+\.(?:js|css|svg)))?")
_HEADERS = {
    # Its own scripts and styles, its own server, images in messages, nobody to frame it, no text
    # parsed as HTML.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; trusted-types 'none'; require-trusted-types-for 'script'",
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Page:
    """ASGI middleware, behind the gate: the page, and ``GET /`` for a browser; all else goes on."""

    app: ASGIApp
    _files: StaticFiles = field(default_factory=lambda: StaticFiles(directory=FOLDER), init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser; who asks ``/`` for JSON or anything gets the server's answer."""
        answer = await self._answer(scope) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        if scope["method"] not in ("GET", "HEAD"):
            return None
        if scope["path"] == "/" and "text/html" in Request(scope).headers.get("accept", ""):
            return RedirectResponse(ADDRESS, headers={"Vary": "Accept"})
        if (found := _PATH.fullmatch(scope["path"])) is None:
            return None
        try:
            answer = await self._files.get_response(found[1] or "index.html", scope)
        except HTTPException:  # there is no such file: the server says so
            return None
        answer.headers.update(_HEADERS)
        return answer
