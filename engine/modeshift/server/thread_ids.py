"""``OneSpelling``: spells a new thread's id as the routes do, whoever makes the thread.

A thread's settings are found by its id. The dev server changes another spelling to this one by
itself, and the settings would be lost; Aegra keeps it, and no route reaches the thread.
"""

import json
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from modeshift.modes.errors import InvalidInputError
from modeshift.server.answers import with_body
from modeshift.server.gate import refuse
from modeshift.storage.kept_threads import spell_thread


@dataclass(frozen=True)
class OneSpelling:
    """ASGI middleware, behind the gate, which lets only JSON bodies through."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the id of a new thread as it is spelled; or a 422."""
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        if is_post and scope["path"] in ("/threads", "/modeshift/threads"):
            try:
                body = _spell(await Request(scope, receive).body())
            except ClientDisconnect:
                return
            except (InvalidInputError, RecursionError) as error:
                await refuse(scope, receive, send, str(error), status=422)
                return
            scope, receive = with_body(scope, receive, body)
        await self.app(scope, receive, send)


def _spell(body: bytes) -> bytes:
    try:
        given = json.loads(body)
    except ValueError:  # the server says so
        return body
    if not isinstance(given, dict):
        return body
    if (id := given.pop("thread_id", None)) is not None:
        given["thread_id"] = spell_thread(id)
    return json.dumps(given).encode()
