"""``StartPage``: where to go from here, for a person who opens the server's address."""

from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HEADERS = {
    # Nothing to load, nothing to run, nobody to frame it.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Modeshift</title>
<h1>Modeshift</h1>
<p>The agent is running. This is its server; talk to it with one of these:</p>
<ul>
<li><a href="https://smith.langchain.com/studio/?baseUrl={address}">LangGraph Studio</a>
(LangSmith's page; it wants an account)</li>
<li><a href="http://localhost:3000/?apiUrl={address}&amp;assistantId=agent">Agent Chat UI</a>,
if you have started it on this machine</li>
<li>an editor: <code>make acp</code> prints its settings</li>
</ul>
<p>About the server: <a href="/docs">API documentation</a>, <a href="/ok">health</a>,
<a href="/info">version</a></p>
</html>
"""


@dataclass(frozen=True)
class StartPage:
    """ASGI middleware, behind the gate: ``GET /`` for a browser; all else goes on as it is."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser; who asks for JSON or anything (``*/*``) gets the server's answer."""
        if scope["type"] == "http" and scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            request = Request(scope)
            if "text/html" in request.headers.get("accept", ""):
                address = quote(str(request.base_url).rstrip("/"), safe=":/")
                page = HTMLResponse(_PAGE.format(address=escape(address)), headers=_HEADERS)
                await page(scope, receive, send)
                return
        await self.app(scope, receive, send)
