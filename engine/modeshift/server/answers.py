"""``BindAnswers``: binds a decision to the question that is open when the request comes in.

It adds the question's id to a decision that has none. The server may run it later, even after a
crash, and the graph refuses it if another question is open by then.

A decision that names no question never answers one that its client cannot have seen: a second
click would approve what nobody has read.

A decision is never queued behind a run that is under way: a second click on "approve" gets a
409. The server's second protocol (event streaming), in which a decision looks like any other
input, is not among the gate's routes.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_data import JsonObject
from modeshift.server.gate import refuse
from modeshift.server.thread_modes import call_server
from modeshift.storage.kept_threads import spell_thread

_RUNS = re.compile(r"POST /threads/([^/]+)/runs(/stream|/wait)?")
_ID = re.compile(r"[0-9a-f]{32}")
"""The id of an interrupt."""
_READS = re.compile(
    r"/threads/([^/]+)(?:/(?:history|question|state|stream|runs/(?:[^/]+/)?(?:join|stream|wait)))?"
)
"""Requests that show a client the open question; a search shows those of all threads."""
Client = tuple[str, str, str]
"""The thread's id, and what tells its clients apart."""
MAX_READS = 10_000
SECONDS = 1
"""Nobody reads a question in a browser and decides on it in less time."""
UNSEEN = "you cannot have read what waits: read the thread, or say which question you answer"
GONE_ON = (
    "no question is open there: the thread has gone on since; answer what waits now, or fork the "
    "thread there with update_state"
)


@dataclass(frozen=True)
class BindAnswers:
    """ASGI middleware, behind the gate, which lets only JSON bodies through."""

    app: ASGIApp
    names_questions: bool = True
    """Whether to add the open question's id to a decision that has none."""
    _started: float = field(default_factory=time.time, init=False)
    _reads: dict[Client, float] = field(default_factory=dict, init=False)
    """When each client last read each thread."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; if it resumes a run, bind the decision to its question first."""
        if (match := _RUNS.fullmatch(get_line(scope))) is None:
            await self._pass_on(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
            run = _read_object(body)
        except ClientDisconnect:
            return
        except RecursionError:
            await refuse(scope, receive, send, "the body is nested too deeply", status=400)
            return
        command = run.get("command")
        if isinstance(command, dict) and command.get("resume") is not None:
            bound = await self._bind(match[1], run, scope)
            if isinstance(bound, str):
                await refuse(scope, receive, send, bound, status=409)
                return
            body = json.dumps({**bound, "multitask_strategy": "reject"}).encode()
        await self._pass_on(*with_body(scope, receive, body), send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = _READS.fullmatch(scope["path"]) if scope["type"] == "http" else None

        async def note_and_send(message: Message) -> None:
            # Before it is sent: the client may answer at once.
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            if read is not None and is_last:
                await self.note_read(_name_client(read[1], scope))
            await send(message)

        await self.app(scope, receive, note_and_send)

    async def note_read(self, client: Client) -> None:
        """Remember that the client has just read its thread."""
        self._reads[client] = time.time()
        if len(self._reads) > MAX_READS:
            del self._reads[next(iter(self._reads))]

    async def find_read(self, clients: Sequence[Client]) -> float:
        """When one of the clients last read its thread; 0 for never."""
        return max(self._reads.get(client, 0) for client in clients)

    async def _bind(self, thread: str, run: JsonObject, scope: Scope) -> JsonObject | str:
        """The run with the open question's id in its answer; or why it can answer nothing.

        LangGraph keeps the first answer at a checkpoint, and would use it again whatever a later
        one says. Chat UIs name the newest checkpoint. It is left out here: the thread may have
        gone on from it when the server starts the run, or starts it again.
        """
        stripped, named = _drop_checkpoint(run), {*_list_checkpoints(run)}
        resume = run["command"]["resume"]
        answer = resume if isinstance(resume, dict) and "decisions" in resume else {}
        if answer.get("question") and not named:
            return stripped  # the graph compares; reading the thread costs as much as a step
        state = await call_server(Request(scope), "GET", f"/threads/{thread}/state")
        try:
            now = state.json()
            names = {each["id"]: each["value"]["question"] for each in now["interrupts"]}
            newest = now["checkpoint"]["checkpoint_id"]
            asked = datetime.fromisoformat(now["created_at"]).timestamp() if names else 0
        except (ValueError, LookupError, TypeError):
            return stripped  # no such thread, for example: then there is nothing to answer
        if not named <= {newest}:
            return GONE_ON
        is_bare = bool(answer) and not answer.get("question")
        ids = resume.keys() if isinstance(resume, dict) else set[str]()
        is_gone = bool(ids) and all(map(_ID.fullmatch, ids)) and ids.isdisjoint(names)
        if is_gone or (is_bare and not names):
            return GONE_ON  # LangGraph ignores the first; the second is refused from now on
        clients = [_name_client(id, scope) for id in (thread, "search")]
        read = max(self._started, await self.find_read(clients))
        # Only in a browser a second click comes from a person who has read the question before.
        latest = time.time() - SECONDS if "origin" in Headers(scope=scope) else read
        if is_bare and not named and asked > min(read, latest):
            return UNSEEN
        if self.names_questions:
            resume = _add_question_ids(resume, names)
        return {**stripped, "command": {**run["command"], "resume": resume}}


def _name_client(thread: str, scope: Scope) -> Client:
    headers = Headers(scope=scope)
    return thread, headers.get("authorization", ""), headers.get("user-agent", "")


def get_line(scope: Scope) -> str:
    """The request's method and path; empty for what is no HTTP request."""
    return f"{scope['method']} {scope['path']}" if scope["type"] == "http" else ""


def _read_object(body: bytes) -> JsonObject:
    """The JSON object of a request; empty for anything else, which the server then refuses."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _list_checkpoints(run: JsonObject) -> Iterator[str]:
    """The ids of the checkpoints that a run names, wherever the server looks for one."""
    config = run.get("config")
    values = config.get("configurable") if isinstance(config, dict) else None
    for place in (run, run.get("checkpoint"), values, run.get("context")):
        if isinstance(place, dict) and (id := place.get("checkpoint_id")):
            yield str(id)


def _drop_checkpoint(run: JsonObject) -> JsonObject:
    kept = {key: one for key, one in run.items() if key not in ("checkpoint", "checkpoint_id")}
    for key in ("config", "configurable", "context"):
        if isinstance(kept.get(key), dict):
            kept[key] = _drop_checkpoint(kept[key])
    return kept


def _add_question_ids(resume: object, names: dict[str, str]) -> object:
    """The answer with the id of its question; of several answers, each with that of its own."""
    if not isinstance(resume, dict):
        return resume
    if "decisions" in resume:
        return {"question": next(iter(names.values())), **resume} if len(names) == 1 else resume
    return {
        id: {"question": names[id], **each} if id in names and isinstance(each, dict) else each
        for id, each in resume.items()
    }


def with_body(scope: Scope, receive: Receive, body: bytes) -> tuple[Scope, Receive]:
    """The request with this body in place of its own, which was read, and what comes after it."""
    dropped = (b"content-length", b"transfer-encoding")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    headers.append((b"content-length", str(len(body)).encode()))
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(messages, None) or await receive()

    return {**scope, "headers": headers}, receive_again


@dataclass(frozen=True)
class OneSpelling:
    """ASGI middleware, behind the gate: spells a new thread's id as the routes do.

    A thread's settings are found by its id. The dev server changes another spelling to this one by
    itself, and the settings would be lost; Aegra keeps it, and no route reaches the thread.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the id of a new thread as it is spelled; or a 422."""
        if get_line(scope) in ("POST /threads", "POST /modeshift/threads"):
            try:
                body = await Request(scope, receive).body()
                if "thread_id" in (given := _read_object(body)):
                    if (id := given.pop("thread_id")) is not None:
                        given["thread_id"] = spell_thread(id)
                    body = json.dumps(given).encode()
            except ClientDisconnect:
                return
            except (InvalidInputError, RecursionError) as error:
                await refuse(scope, receive, send, str(error), status=422)
                return
            scope, receive = with_body(scope, receive, body)
        await self.app(scope, receive, send)
