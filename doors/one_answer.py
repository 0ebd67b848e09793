"""``OneAnswer``: a decision never waits for a run that is under way.

The server would keep it until the run ends, and a second click on "approve" would
answer the question that comes next. Instead it gets a 409. The server's second protocol
(event streaming), in which a decision looks like any input, is not on the gate's list.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doors.gate import refuse

_RUNS = re.compile(r"/threads/[^/]+/runs(/stream|/wait)?/?")


@dataclass(frozen=True)
class OneAnswer:
    """ASGI middleware, behind the gate: bodies are JSON here."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; of a run that resumes with what to do where another one runs."""
        is_run = scope["type"] == "http" and scope["method"] == "POST"
        if not is_run or _RUNS.fullmatch(scope["path"]) is None:
            await self.app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            return
        try:
            body = _rejecting(body)
        except RecursionError:
            await refuse(scope, receive, send, "the body is nested too deeply", status=400)
            return
        kept = [
            (name, value)
            for name, value in scope["headers"]
            if name not in (b"content-length", b"transfer-encoding")
        ]
        headers = [*kept, (b"content-length", str(len(body)).encode())]
        is_sent = False

        async def given() -> Message:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app({**scope, "headers": headers}, given, send)


def _rejecting(body: bytes) -> bytes:
    """The run with ``multitask_strategy`` set, if it resumes; anything else as it is."""
    try:
        run: Any = json.loads(body)
    except ValueError:
        return body
    command = run.get("command") if isinstance(run, dict) else None
    if not isinstance(command, dict) or command.get("resume") is None:
        return body
    return json.dumps({**run, "multitask_strategy": "reject"}).encode()


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None where the client has gone."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body
