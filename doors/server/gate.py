"""``Gate``: which requests get past the door of the dev server.

The server as it comes answers any web page that its user happens to visit: a page may
send a request to 127.0.0.1 as well as the user may. What gives such a page away is a
foreign ``Origin``; a foreign ``Host``, where a name of the page's own has been made to
lead here; or a body that is not JSON, the only one that a browser sends unasked. And the
server has routes that ask for no token: only those of ``doors/server/routes.py`` are let through.
"""

from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from doors.server.routes import is_known
from graph.settings import LOOPBACK

JSON = "application/json"
IS_INNER: ContextVar[bool] = ContextVar("IS_INNER", default=False)
"""Whether the request is one that the server makes to itself: for its MCP and A2A endpoints."""


@dataclass(frozen=True)
class Gate:
    """ASGI middleware, for the outermost place; also for WebSockets, which know no CORS."""

    app: ASGIApp
    origins: Collection[str] = ()
    """Web pages that may use the server, as ``scheme://host[:port]``."""
    has_token: bool = False
    """Whether the server asks for a token, and so may be reached from elsewhere."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403; 404 for what is not on the list."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        # No request from outside can set it: so the SDK's in-process client comes.
        is_inner = scope.get("root_path") == "/noauth"
        if not is_inner and (problem := self.problem(scope)):
            await refuse(scope, receive, send, problem)
        elif problem := _unknown_route(scope):
            await refuse(scope, receive, send, problem, status=404)
        else:
            IS_INNER.set(is_inner)
            await self.app(scope, receive, send)

    def problem(self, scope: Scope) -> str | None:
        """Why the request is refused; None where it is not."""
        headers = Headers(scope=scope)
        host, _ = scope.get("server") or ("", None)
        is_local = host in LOOPBACK
        if not is_local and not self.has_token:
            return f"the server listens on {host!r} without an AUTH_TOKEN"
        return (
            (_foreign_host(headers.getlist("host")) if is_local else None)
            or self._foreign_page(headers)
            or _foreign_body(headers)
        )

    def _foreign_page(self, headers: Headers) -> str | None:
        given = headers.getlist("origin")
        own = f"http://{headers.get('host', '')}"
        if not given:
            # A page's picture, frame or script has no Origin; every browser says where from.
            is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
            return "a request of another web page" if is_foreign else None
        if len(given) == 1 and (given[0] in self.origins or given[0] == own):
            return None
        return f"the web page {given[0]!r} may not use this server; ALLOWED_ORIGINS says which may"


def _foreign_host(given: list[str]) -> str | None:
    try:
        parsed = urlsplit(f"//{given[0]}") if len(given) == 1 else None
        name = parsed.hostname if parsed is not None and parsed.port is not None else None
    except ValueError:
        name = None
    plain = given[0] if len(given) == 1 else None
    if name in LOOPBACK or plain in LOOPBACK:
        return None
    return f"this server is not {plain!r}; use 127.0.0.1 or localhost"


def _foreign_body(headers: Headers) -> str | None:
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if not has_body or kind == JSON:
        return None
    return f"a body of the type {kind!r}; this server takes {JSON!r}"


def _unknown_route(scope: Scope) -> str | None:
    path = scope["path"]
    if scope["type"] == "websocket":
        return f"no WebSocket is served, {path!r} neither; use runs"
    if is_known(scope["method"], path):
        return None
    return f"{scope['method']} {path!r} is not on the list in doors/server/routes.py"


async def refuse(
    scope: Scope, receive: Receive, send: Send, problem: str, status: int = 403
) -> None:
    """Answer a request, or a WebSocket's, with why it does not get in."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": problem[:100]})
        return
    await JSONResponse({"detail": f"refused: {problem}"}, status)(scope, receive, send)
