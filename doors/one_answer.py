"""``OneAnswer``: a decision is for the question that is open when it comes in.

One that does not say which it answers gets its name here. The server may run it later, after
a crash even, and the graph that it serves refuses it where another question is open by then.

Nor does a decision wait for a run that is under way: a second click on "approve" gets a 409.
The server's second protocol (event streaming), in which a decision looks like any input, is
not on the gate's list.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doors.gate import refuse

_RUNS = re.compile(r"(/threads/[^/]+)/runs(/stream|/wait)?/?")


@dataclass(frozen=True)
class OneAnswer:
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
            if self.names_questions:
                questions = await self._questions(scope, found[1], run)
                resume = _with_question(run["command"]["resume"], questions)
                run = {**run, "command": {**run["command"], "resume": resume}}
            body = json.dumps({**run, "multitask_strategy": "reject"}).encode()
        await self.app(_with_body(scope, body), _giving(body, receive), send)

    async def _questions(self, scope: Scope, thread: str, run: dict[str, Any]) -> dict[str, str]:
        """The names of the open questions by their interrupts' ids, as the caller may see them.

        Of the checkpoint that the run goes on from, if it names one; chat UIs do.
        """
        checkpoint = run.get("checkpoint") or {"checkpoint_id": run.get("checkpoint_id")}
        method, path, body = "GET", f"{thread}/state", b""
        if checkpoint != {"checkpoint_id": None}:
            method, path = "POST", f"{path}/checkpoint"
            body = json.dumps({"checkpoint": checkpoint}).encode()
        headers = [one for one in scope["headers"] if one[0] != b"accept-encoding"]
        asked = {"method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        answer = bytearray()

        async def heard(message: Message) -> None:
            answer.extend(message.get("body", b""))

        inner = _with_body({**scope, **asked, "headers": headers}, body)
        await self.app(inner, _giving(body), heard)
        try:
            state: Any = json.loads(answer)
            return {one["id"]: one["value"]["question"] for one in state["interrupts"]}
        except (ValueError, LookupError, TypeError):
            return {}  # no such thread, say: then there is nothing to answer


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


def _with_question(resume: Any, questions: dict[str, str]) -> Any:
    """The answer, or the answers by interrupt, each with the name of its question."""
    if not isinstance(resume, dict):
        return resume
    if "decisions" in resume:
        names = list(questions.values())
        return {"question": names[0], **resume} if len(names) == 1 else resume
    return {
        id: {"question": questions[id], **one} if id in questions and isinstance(one, dict) else one
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
