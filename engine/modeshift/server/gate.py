"""``Gate``: which requests reach the dev server.

On its own the server answers any web page that its user happens to visit, because a page may
send requests to 127.0.0.1. Such a page gives itself away by a foreign ``Origin``; by a foreign
``Host``, if its own name leads here (DNS rebinding); or by a body that is not JSON, the only kind
that a browser sends without asking first. The server also has routes that need no token: only
those in ``_ROUTES``, and our own, are let through.
"""

import logging
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from modeshift.configuration.settings import LOOPBACK
from modeshift.modes.plain_text import to_one_line
from modeshift.observing import count
from modeshift.server.routes import ROUTES

_FIELDS = {
    # Only ids, as a later version may add a route "/threads/something". And only one spelling: a
    # thread's limit is found by its id, and must not be stored under another spelling of it.
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "name": r"[A-Za-z0-9_-]+",
    "file": r"[a-z]+\.(?:js|css|svg)",
    "namespace": r"[A-Za-z0-9_:|-]+",
}
_ROUTES = {
    "/": "GET",
    "/ok": "GET",
    "/modeshift/ready": "GET",
    "/metrics": "GET",
    "/info": "GET",
    "/docs": "GET",
    "/openapi.json": "GET",
    "/app": "GET",
    "/app/{file}": "GET",
    "/assistants": "POST",
    "/assistants/search": "POST",
    "/assistants/count": "POST",
    "/assistants/{id}": "GET PATCH DELETE",
    "/assistants/{id}/latest": "POST",
    "/assistants/{id}/versions": "POST",
    "/assistants/{name}/graph": "GET",
    "/assistants/{id}/schemas": "GET",
    "/assistants/{id}/subgraphs": "GET",
    "/assistants/{id}/subgraphs/{namespace}": "GET",
    "/threads": "POST",
    "/threads/search": "POST",
    "/threads/count": "POST",
    "/threads/prune": "POST",
    "/threads/{id}": "GET PATCH DELETE",
    "/threads/{id}/copy": "POST",
    "/threads/{id}/state": "GET POST",
    "/threads/{id}/state/{id}": "GET",
    "/threads/{id}/state/checkpoint": "POST",
    "/threads/{id}/history": "GET POST",
    "/threads/{id}/stream": "GET",
    "/threads/{id}/runs": "GET POST",
    "/threads/{id}/runs/stream": "POST",
    "/threads/{id}/runs/wait": "POST",
    "/threads/{id}/runs/crons": "POST",
    "/threads/{id}/runs/{id}": "GET DELETE",
    "/threads/{id}/runs/{id}/join": "GET",
    "/threads/{id}/runs/{id}/stream": "GET",
    "/threads/{id}/runs/{id}/cancel": "POST",
    "/runs": "POST",
    "/runs/stream": "POST",
    "/runs/wait": "POST",
    "/runs/batch": "POST",
    "/runs/cancel": "POST",
    "/runs/crons": "POST",
    "/runs/crons/search": "POST",
    "/runs/crons/count": "POST",
    "/runs/crons/{id}": "GET PATCH DELETE",
    "/store/items": "GET PUT DELETE",
    "/store/items/search": "POST",
    "/store/namespaces": "POST",
}


def _compile(route: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", route)
    return re.compile(
        "".join(_FIELDS[part] if place % 2 else re.escape(part) for place, part in enumerate(parts))
    )


_KNOWN = [(_compile(route), frozenset(methods.split())) for route, methods in _ROUTES.items()]
_KNOWN += [(_compile(route.path), frozenset(route.methods or ())) for route in ROUTES]
_EVENT_STREAMING = re.compile(r"/threads/[^/]+/(?:commands|stream/events)")


def is_known(method: str, path: str) -> bool:
    """Whether the path, as the server's router will see it, is on the list for the method.

    All of it must match: the router's own patterns stop before a final line break.
    """
    methods = {name for pattern, names in _KNOWN if pattern.fullmatch(path) for name in names}
    if method == "OPTIONS":  # a browser asks this before it sends another page's request
        return bool(methods)
    return ("GET" if method == "HEAD" else method) in methods


JSON = "application/json"


@dataclass
class RefusalLog:
    """Logs a line for each refusal, up to a number: anybody can cause any number."""

    most: int = 20
    seconds: float = 60
    _begin: float = float("-inf")
    _count: int = 0

    def write(self, scope: Scope, problem: str) -> None:
        """Log a refusal; only the first ``most`` within ``seconds``, and that there are more."""
        if time.monotonic() - self._begin >= self.seconds:
            self._begin, self._count = time.monotonic(), 0
        self._count += 1
        what = f"{scope.get('method', 'WebSocket')} {scope['path']}"
        logger = logging.getLogger("modeshift")
        if self._count <= self.most:
            logger.warning("refused %s: %s", to_one_line(what, 80), to_one_line(problem))
        elif self._count == self.most + 1:
            logger.warning("more was refused within %d seconds, and is not logged", self.seconds)


_REFUSALS = RefusalLog()


@dataclass(frozen=True)
class Gate:
    """ASGI middleware, the outermost one. It refuses every WebSocket."""

    app: ASGIApp
    origins: Collection[str] = ()
    """The web pages that may use the server, as ``scheme://host[:port]``."""
    has_token: bool = False
    """Whether clients need a token, so that the server may be reached from other machines."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it: 403, or 404 for a route that is not on the list."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        # The SDK's in-process client sets this; no request from outside can.
        is_inner = scope.get("root_path") == "/noauth"
        if not is_inner and (problem := self._find_problem(scope)):
            await refuse(scope, receive, send, problem)
        elif problem := _check_route(scope):
            await refuse(scope, receive, send, problem, status=404)
        else:
            await self.app(scope, receive, send)

    def _find_problem(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host, _ = scope.get("server") or ("", None)
        is_local = host in LOOPBACK
        if not is_local and not self.has_token:
            return f"the server listens on {host!r} without an AUTH_TOKEN"
        return (
            (_check_host(headers.getlist("host")) if is_local else None)
            or self._check_page(headers)
            or _check_body(headers)
        )

    def _check_page(self, headers: Headers) -> str | None:
        origins = headers.getlist("origin")
        own = f"http://{headers.get('host', '')}"
        if not origins:
            # A page's picture, frame or script has no Origin; this header says whose page it is.
            if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
                return None
            return "a request of another web page; ALLOWED_ORIGINS says which may send some"
        if len(origins) == 1 and (origins[0] in self.origins or origins[0] == own):
            return None
        return f"ALLOWED_ORIGINS does not name the web page {origins[0]!r}"


def _check_host(hosts: list[str]) -> str | None:
    try:
        parsed = urlsplit(f"//{hosts[0]}") if len(hosts) == 1 else None
        name = parsed.hostname if parsed is not None and parsed.port is not None else None
    except ValueError:
        name = None
    host = hosts[0] if len(hosts) == 1 else None
    if name in LOOPBACK or host in LOOPBACK:
        return None
    return f"use 127.0.0.1 or localhost, or set LISTEN and AUTH_TOKEN; this is not {host!r}"


def _check_body(headers: Headers) -> str | None:
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if not has_body or kind == JSON:
        return None
    return f"a body of the type {kind!r} is not taken; send {JSON!r}"


def _check_route(scope: Scope) -> str | None:
    path = scope["path"]
    if scope["type"] == "websocket":
        return f"no WebSockets are served, so {path!r} is not; use the HTTP routes of runs"
    if is_known(scope["method"], path):
        return None
    if _EVENT_STREAMING.fullmatch(path):
        return "event streaming (client.threads.stream) is not served; use client.runs.stream"
    return f"not on the list in modeshift/server/gate.py: {scope['method']} {path!r}"


async def refuse(
    scope: Scope, receive: Receive, send: Send, problem: str, status: int = 403
) -> None:
    """Answer a request, or a WebSocket's, with the reason why it is refused; log it."""
    _REFUSALS.write(scope, problem)
    count("refusal", status=str(status))
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": problem[:100]})
        return
    await JSONResponse({"detail": f"refused: {problem}"}, status)(scope, receive, send)
