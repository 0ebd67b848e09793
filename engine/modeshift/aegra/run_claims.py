"""``RunClaims``: refuses, between the gate and Aegra, what Aegra must not let in.

A second run in a thread, a change of its state or its deletion during a run: each is a 409.
Requests that Aegra has in another form than the dev server are translated here.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass

from aegra_api.core.active_runs import active_runs
from langgraph.store.base import InvalidNamespaceError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modeshift.aegra.claims import BUSY, CLAIM, Claims, make_holder
from modeshift.modes.errors import InvalidInputError, StorageError, UserError
from modeshift.modes.plain_data import JsonObject
from modeshift.server.answers import get_line, with_body
from modeshift.server.checkpointer import database
from modeshift.server.gate import refuse
from modeshift.server.thread_modes import call_server
from modeshift.storage.threads import open_saver

_STARTS = re.compile(r"POST /threads/([^/]+)/runs(?:/stream|/wait)?")
_CHANGES = re.compile(r"(?:POST(?=.*/state)|DELETE) /threads/([^/]+)(?:/state)?")
_CANCELS = re.compile(r"POST /threads/([^/]+)/runs/([^/]+)/cancel")
_JOINS = re.compile(r"GET /threads/([^/]+)/runs/([^/]+)/(?:join|stream)")
_READS = re.compile(r"GET /threads/.+|POST /threads/(?:search|count|[^/]+/history)")
FAILED = re.compile(rb"\w+: execution failed")
_ERROR = "SELECT error_message FROM runs WHERE run_id = :run AND status = 'error'"
BAD = 400
SECONDS = 2
"""How long a request waits for a thread whose run has ended: the claim ends just after it."""


@dataclass(frozen=True)
class RunClaims:
    """ASGI middleware, behind the gate."""

    app: ASGIApp
    claims: Claims

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when its thread is free."""
        line = get_line(scope)
        if match := _STARTS.fullmatch(line) or _CHANGES.fullmatch(line):
            await self._claim(match[1], scope, receive, send)
            return
        if _READS.fullmatch(line):
            await self.claims.settle_what_is_left()
        if line == "POST /threads/search":
            await self._search(scope, receive, send)
            return
        if match := _JOINS.fullmatch(line):
            await self._await_end(match[1], match[2], Request(scope))
            if match[2] not in active_runs:  # Aegra would wait for events behind the last known one
                headers = [each for each in scope["headers"] if each[0] != b"last-event-id"]
                scope = {**scope, "headers": headers}
        status = await self._pass_on(scope, receive, send)
        if (match := _CANCELS.fullmatch(line)) and status < BAD:
            await self.claims.cancel(match[1], match[2])

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Pass the request on; returns the status of the answer."""
        start: Message = {"status": BAD}

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif FAILED.search(body := message.get("body", b"")):
                run = Headers(raw=start["headers"]).get("content-location", "").rpartition("/")[2]
                message = {**message, "body": await _explain(body, run)}
            await send(message)

        await self.app(scope, receive, watch)
        return int(start["status"])

    async def _claim(self, thread: str, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        shown = await call_server(request, "GET", f"/threads/{thread}")
        if not shown.is_success:  # no such thread, or another user's: Aegra says so
            await self.app(scope, receive, send)
            return
        holder, goes_on = make_holder(), False
        if not await self._take(thread, holder, request):
            await refuse(scope, receive, send, BUSY.format(thread), status=409)
            return
        try:
            is_run = "/runs" in scope["path"]
            body = await request.body() if is_run else b""
            status = shown.json()["status"]
            if status in ("busy", "error") or (status == "idle" and b'"resume"' in body):
                await self.claims.settle(thread)
            if is_run:
                body = translate_run(body, holder)
                scope, receive = with_body(scope, receive, body)
            if scope["method"] == "DELETE":
                send = _forget_first(thread, send)
            goes_on = await self._pass_on(scope, receive, send) < BAD and is_run
        finally:
            if not goes_on:
                await self.claims.drop(thread, holder)

    async def _take(self, thread: str, holder: str, request: Request) -> bool:
        end = time.monotonic() + SECONDS
        while not await self.claims.take(thread, holder):
            shown = await call_server(request, "GET", f"/threads/{thread}")
            if shown.json().get("status") == "busy" or time.monotonic() > end:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _search(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find threads by their ids, which Aegra cannot; it always gives all of their fields."""
        body = await Request(scope, receive).body()
        search = parse_object(body)
        if search.pop("select", None) is not None or "ids" in search:
            body = json.dumps(search).encode()
        if isinstance(ids := search.get("ids"), list):
            request = Request(scope)
            shown = [await call_server(request, "GET", f"/threads/{id}") for id in ids]
            answer = JSONResponse([each.json() for each in shown if each.is_success])
            await answer(scope, receive, send)
        else:
            await self.app(*with_body(scope, receive, body), send)

    async def _await_end(self, thread: str, run: str, request: Request) -> None:
        """Wait for the end of a run in another process, whose stream cannot be read here."""
        path = f"/threads/{thread}/runs/{run}"
        while run not in active_runs:
            shown = await call_server(request, "GET", path)
            if not shown.is_success or shown.json()["status"] not in ("pending", "running"):
                return
            await asyncio.sleep(0.5)


def _forget_first(thread: str, send: Send) -> Send:
    """A ``send`` that deletes what we store of a thread before Aegra says that it is deleted."""

    async def forget_and_send(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < BAD:
            async with open_saver(database) as saver:
                await saver.adelete_thread(thread)
        await send(message)

    return forget_and_send


async def _explain(body: bytes, run: str) -> bytes:
    """The event with why the run failed, which Aegra leaves out."""
    rows = await database.execute(_ERROR, run=run)
    text = json.dumps(rows[0][0])[1:-1].encode() if rows else b""
    return FAILED.sub(lambda _: text, body) if text else body


def parse_object(body: bytes) -> JsonObject:
    """The JSON object of a request; empty for anything else, which Aegra then refuses."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def translate_run(body: bytes, holder: str) -> bytes:
    """A run's body in Aegra's form; Aegra itself refuses one that is no run."""
    run = parse_object(body)
    config = run.get("config") or {}
    here = config.get("configurable") or {} if isinstance(config, dict) else None
    if not run or not isinstance(here, dict):
        return body
    run["config"] = {**config, "configurable": {**here, CLAIM: holder}}
    run["durability"] = "sync"  # an approval is stored before the call begins
    run.setdefault("on_disconnect", "continue")
    if all(run.get(name) is None for name in ("input", "command", "checkpoint_id")):
        run["checkpoint"] = run.get("checkpoint") or {}  # or Aegra takes no run without input
    return json.dumps(run).encode()


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
            if _RUNS.fullmatch(get_line(scope)):
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
