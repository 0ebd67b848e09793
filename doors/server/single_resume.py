"""``BindResume``: a decision is for the question that is open when it comes in.

One that does not say which it answers gets its name here. The server may run it later, after
a crash even, and the graph that it serves refuses it where another question is open by then.

Nor does a decision wait for a run that is under way: a second click on "approve" gets a 409.
The server's second protocol (event streaming), in which a decision looks like any input, is
not on the gate's list.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doors.server.gate import refuse

_RUNS = re.compile(r"(/threads/[^/]+)/runs(/stream|/wait)?")


GONE_ON = (
    "no question is open there: the thread has gone on since; answer what waits now, or fork the "
    "thread there with update_state"
)


@dataclass(frozen=True)
class BindResume:
    """ASGI middleware, behind the gate: bodies are JSON here."""

    app: ASGIApp
    names_questions: bool = True
    """Whether a decision that names no question gets the name of the one that is open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a run that resumes with its question, and never to wait."""
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        found = _RUNS.fullmatch(scope["path"]) if is_post else None
        if found is None:
            await self.app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            return
        try:
            run = _resuming(body)
        except RecursionError:
            await refuse(scope, receive, send, "the body is nested too deeply", status=400)
            return
        if run is not None:
            run = self._bound(run, await self._state(scope, found[1]))
            if run is None:
                await refuse(scope, receive, send, GONE_ON, status=409)
                return
            body = json.dumps({**run, "multitask_strategy": "reject"}).encode()
        await self.app(_with_body(scope, body), _giving(body, receive), send)

    async def _state(self, scope: Scope, thread: str) -> bytes:
        """The thread's state as the caller may see it; what it is told where it may not."""
        path = f"{thread}/state"
        headers = [one for one in scope["headers"] if one[0] != b"accept-encoding"]
        asked = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        answer = bytearray()

        async def heard(message: Message) -> None:
            answer.extend(message.get("body", b""))

        inner = _with_body({**scope, **asked, "headers": headers}, b"")
        await self.app(inner, _giving(b""), heard)
        return bytes(answer)

    def _bound(self, run: dict[str, Any], state: bytes) -> dict[str, Any] | None:
        """The run with the open question's name in its answer; None for an older checkpoint.

        LangGraph keeps the answer that was given there, and would take it again, whatever the new
        one is. Chat UIs name the newest, and it is left out: the thread may have gone on from it
        by the time that the server starts the run, or starts it anew.
        """
        kept = _without_checkpoint(run)
        try:
            now: Any = json.loads(state)
            names = {one["id"]: one["value"]["question"] for one in now["interrupts"]}
            newest = now["checkpoint"]["checkpoint_id"]
        except (ValueError, LookupError, TypeError):
            return kept  # no such thread, say: then there is nothing to answer
        if not {*_checkpoints(run)} <= {newest}:
            return None
        resume = run["command"]["resume"]
        if not names and isinstance(resume, dict) and resume.keys() == {"decisions"}:
            return None  # the graph would keep it, and refuse it in every run from now on
        if self.names_questions:
            resume = _with_question(resume, names)
        return {**kept, "command": {**run["command"], "resume": resume}}


def _resuming(body: bytes) -> dict[str, Any] | None:
    """The run, if it resumes."""
    try:
        run: Any = json.loads(body)
    except ValueError:
        return None
    command = run.get("command") if isinstance(run, dict) else None
    if not isinstance(command, dict) or command.get("resume") is None:
        return None
    return dict(run)


def _checkpoints(run: dict[str, Any]) -> Iterator[str]:
    """The ids of the checkpoints that a run names, wherever the server looks for one."""
    config = run.get("config")
    given = config.get("configurable") if isinstance(config, dict) else None
    for place in (run, run.get("checkpoint"), given, run.get("context")):
        if isinstance(place, dict) and (id := place.get("checkpoint_id")):
            yield str(id)


def _without_checkpoint(run: dict[str, Any]) -> dict[str, Any]:
    kept = {key: one for key, one in run.items() if key not in ("checkpoint", "checkpoint_id")}
    for key in ("config", "configurable", "context"):
        if isinstance(kept.get(key), dict):
            kept[key] = _without_checkpoint(kept[key])
    return kept


def _with_question(resume: Any, names: dict[str, str]) -> Any:
    """The answer, or the answers by interrupt, each with the name of its question."""
    if not isinstance(resume, dict):
        return resume
    if "decisions" in resume:
        return {"question": next(iter(names.values())), **resume} if len(names) == 1 else resume
    return {
        id: {"question": names[id], **one} if id in names and isinstance(one, dict) else one
        for id, one in resume.items()
    }


def _with_body(scope: Scope, body: bytes) -> Scope:
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if name not in (b"content-length", b"transfer-encoding")
    ]
    return {**scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}


def _giving(body: bytes, then: Receive | None = None) -> Receive:
    is_given = False

    async def receive() -> Message:
        nonlocal is_given
        if is_given:
            return await then() if then is not None else {"type": "http.disconnect"}
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


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
