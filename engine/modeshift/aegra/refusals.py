"""``Refusals``: refuses in words what Aegra would accept and ignore, or answer with a bare 500."""

import re
from dataclasses import dataclass

from langgraph.store.base import InvalidNamespaceError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modeshift.aegra.run_claims import parse_object
from modeshift.modes.errors import InvalidInputError, StorageError, UserError
from modeshift.modes.plain_data import JsonObject
from modeshift.server.answers import with_body
from modeshift.server.checkpointer import database

_RUNS = re.compile(r"(?:POST|PATCH) (?:/threads/[^/]+)?/runs(?:/(?:stream|wait|crons(?:/[^/]+)?))?")
_STREAMED = (
    *("values", "updates", "messages", "messages-tuple", "custom", "events", "tasks"),
    *("checkpoints", "debug"),
)


@dataclass(frozen=True)
class Refusals:
    """ASGI middleware, around everything that asks the database."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or say why it cannot be done: 422, or 503 without the database."""
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            if _RUNS.fullmatch(f"{scope.get('method')} {scope.get('path')}"):
                body = await Request(scope, receive).body()
                _check_run(parse_object(body))
                scope, receive = with_body(scope, receive, body)
            await self.app(scope, receive, note)
        except ClientDisconnect:
            return
        except Exception as error:
            answer = None if has_begun else await explain(error)
            if answer is None:
                raise
            await answer(scope, receive, send)


def _check_run(run: JsonObject) -> None:
    """Raise ``InvalidInputError`` for what Aegra would silently ignore."""
    if run.get("after_seconds"):
        raise InvalidInputError("after_seconds: Aegra begins a run at once; leave it out")
    if run.get("webhook"):
        raise InvalidInputError("webhook: Aegra calls none; leave it out, and wait for the run")
    modes = run.get("stream_mode") or ()
    for mode in [modes] if isinstance(modes, str) else modes:
        if mode not in _STREAMED:
            raise InvalidInputError(f"stream_mode {mode!r} is none of {', '.join(_STREAMED)}")


async def explain(error: BaseException) -> Response | None:
    """The answer that says what a client can do about an error; None if it can do nothing."""
    if not isinstance(error, UserError | InvalidNamespaceError):
        try:
            await database.check()
        except StorageError as problem:
            error = problem
        else:
            return None
    return JSONResponse({"detail": str(error)}, 503 if isinstance(error, StorageError) else 422)
