"""``BindAnswers``: binds a decision to the question that is open when the request comes in.

It adds the question's id to a decision that has none. The server may run it later, even after a
crash, and the graph refuses it if another question is open by then.

A decision that names no question is not for one that its client cannot have seen: a second click
would approve what nobody has read.

A decision is never queued behind a run that is under way: a second click on "approve" gets a
409. The server's second protocol (event streaming), in which a decision looks like any other
input, is not among the gate's routes.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import httpx
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modeshift.calls.previews import FileChange, Preview, compare_texts, preview_call
from modeshift.modes.errors import InvalidCallError, ToolFailedError
from modeshift.modes.plain_text import to_one_line
from modeshift.server.gate import refuse
from modeshift.server.thread_modes import call_server, get_deps, pass_on
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import is_cut_off
from modeshift.tools.workspace.text import read_replacements

MAX_FILES = 200
Done = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The arguments of a call that changed a file, and its result's artifact."""


async def read_question(request: Request) -> Response:
    """What each call will do: the diff of an edit, the tools a switch gains.

    ---
    summary: What waits for a person, with previews
    tags: [Modes]
    responses: {"200": {description: "question, a preview (or null) of each call, is_cut_off"}}
    """
    thread = await call_server(request, "GET", f"/threads/{request.path_params['id']}")
    has_run = thread.is_success and thread.json()["status"] == "busy"
    return await _answer(request, partial(_show_question, has_run=has_run))


async def list_files(request: Request) -> Response:
    """Each with its diff since the thread began, as far as that is known.

    ---
    summary: The files that a thread has written
    tags: [Modes]
    responses: {"200": {description: "path, before (null: new), after, lines of the diff"}}
    """
    return await _answer(request, lambda deps, state: list_changes(deps, state["values"]))


async def _answer(request: Request, show: Callable[[AgentDeps, dict[str, Any]], Any]) -> Response:
    answer = await call_server(request, "GET", f"/threads/{request.path_params['id']}/state")
    if answer.status_code != httpx.codes.OK:
        return pass_on(answer)
    state = {"values": {}, **answer.json()}
    state["values"] = state["values"] or {}  # a list, as long as there are none
    deps = await get_deps(request)
    return JSONResponse(await asyncio.to_thread(show, deps, state))


def _show_question(deps: AgentDeps, state: dict[str, Any], *, has_run: bool) -> dict[str, Any]:
    values, interrupts = state["values"], state["interrupts"]
    if not interrupts:
        cut_off = not has_run and is_cut_off(values, state["tasks"], interrupts)
        return {"question": None, "previews": [], "is_cut_off": cut_off}
    asked = interrupts[0]["value"]
    previews: list[Preview | None] = [
        preview_call(deps, call, str(values.get("mode")), values.get("written", ()))
        for call in asked["action_requests"]
    ]
    return {"question": asked["question"], "previews": previews, "is_cut_off": False}


ROUTES = [
    Route("/threads/{id}/question", read_question, methods=["GET"]),
    Route("/threads/{id}/files", list_files, methods=["GET"]),
]


_RUNS = re.compile(r"/threads/([^/]+)/runs(/stream|/wait)?")
_READS = re.compile(
    r"/threads/([^/]+)(?:/(?:history|question|state|stream|runs/(?:[^/]+/)?(?:join|stream|wait)))?"
)
"""What shows a client the open question; a search shows those of all threads."""
Client = tuple[str, str, str]
"""The thread, and what tells clients apart."""
MAX_READS = 10_000
SECONDS = 1
"""Nobody reads a question in a browser and decides in less."""
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
    """When each client last got something of each thread."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; if it resumes a run, bind the decision to its question first."""
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        match = _RUNS.fullmatch(scope["path"]) if is_post else None
        if match is None:
            await self._pass_on(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
            run = _parse_resume(body)
        except ClientDisconnect:
            return
        except RecursionError:
            await refuse(scope, receive, send, "the body is nested too deeply", status=400)
            return
        if run is not None:
            bound = await self._bind(match[1], run, scope)
            if isinstance(bound, str):
                await refuse(scope, receive, send, bound, status=409)
                return
            body = json.dumps({**bound, "multitask_strategy": "reject"}).encode()
        await self._pass_on(set_length(scope, body), make_receive(body, receive), send)

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
        """The client has got something of its thread."""
        self._reads[client] = time.time()
        if len(self._reads) > MAX_READS:
            del self._reads[next(iter(self._reads))]

    async def find_read(self, clients: Sequence[Client]) -> float:
        """When one of them last did; 0 for never."""
        return max(self._reads.get(client, 0) for client in clients)

    async def _bind(self, thread: str, run: dict[str, Any], scope: Scope) -> dict[str, Any] | str:
        """The run with the open question's id in its answer; or why it can answer nothing.

        LangGraph keeps the answer that was given at a checkpoint, and would use it again whatever
        the new one is. Chat UIs name the newest checkpoint. It is left out here: the thread may
        have gone on from it when the server starts the run, or starts it again.
        """
        stripped, named = _drop_checkpoint(run), {*_list_checkpoints(run)}
        resume = run["command"]["resume"]
        answer = resume if isinstance(resume, dict) and "decisions" in resume else {}
        if answer.get("question") and not named:
            return stripped  # the graph compares; reading the thread costs as much as a step
        state = await call_server(Request(scope), "GET", f"/threads/{thread}/state")
        try:
            now: Any = state.json()
            names = {each["id"]: each["value"]["question"] for each in now["interrupts"]}
            newest = now["checkpoint"]["checkpoint_id"]
            asked = datetime.fromisoformat(now["created_at"]).timestamp() if names else 0
        except (ValueError, LookupError, TypeError):
            return stripped  # no such thread, for example: then there is nothing to answer
        if not named <= {newest}:
            return GONE_ON
        is_bare = bool(answer) and not answer.get("question")
        if is_bare and not names:
            return GONE_ON  # the graph would keep it, and refuse it in every run from now on
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


def _parse_resume(body: bytes) -> dict[str, Any] | None:
    """The request's body, if its ``command`` has a ``resume``."""
    try:
        run: Any = json.loads(body)
    except ValueError:
        return None
    command = run.get("command") if isinstance(run, dict) else None
    if not isinstance(command, dict) or command.get("resume") is None:
        return None
    return dict(run)


def _list_checkpoints(run: dict[str, Any]) -> Iterator[str]:
    """The ids of the checkpoints that a run names, wherever the server looks for one."""
    config = run.get("config")
    values = config.get("configurable") if isinstance(config, dict) else None
    for place in (run, run.get("checkpoint"), values, run.get("context")):
        if isinstance(place, dict) and (id := place.get("checkpoint_id")):
            yield str(id)


def _drop_checkpoint(run: dict[str, Any]) -> dict[str, Any]:
    kept = {key: one for key, one in run.items() if key not in ("checkpoint", "checkpoint_id")}
    for key in ("config", "configurable", "context"):
        if isinstance(kept.get(key), dict):
            kept[key] = _drop_checkpoint(kept[key])
    return kept


def _add_question_ids(resume: Any, names: dict[str, str]) -> Any:
    """The answer, or each of the answers by interrupt, with the id of its question."""
    if not isinstance(resume, dict):
        return resume
    if "decisions" in resume:
        return {"question": next(iter(names.values())), **resume} if len(names) == 1 else resume
    return {
        id: {"question": names[id], **each} if id in names and isinstance(each, dict) else each
        for id, each in resume.items()
    }


def set_length(scope: Scope, body: bytes) -> Scope:
    """The request with another body."""
    dropped = (b"content-length", b"transfer-encoding")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    return {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}


def make_receive(body: bytes, then: Receive) -> Receive:
    """An ASGI ``receive`` that returns the body, and after it what ``then`` returns."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(messages, None) or await then()

    return receive


def list_changes(deps: AgentDeps, values: Mapping[str, Any]) -> list[FileChange]:
    """The changes, by the thread's state as the server gives it, all plain data. Blocks."""
    changes: dict[str, list[Done]] = {path: [] for path in _list_written(values)}
    for path, done in _list_done(deps, values):
        changes.setdefault(path, []).append(done)
    return [_compare(deps, path, done) for path, done in list(changes.items())[:MAX_FILES]]


def _list_written(values: Mapping[str, Any]) -> Iterator[str]:
    for change in values.get("mode_changes", ()):
        yield from change.get("written", ())
    yield from values.get("written", ())


def _list_done(deps: AgentDeps, values: Mapping[str, Any]) -> Iterator[tuple[str, Done]]:
    """In the order in which they were made, for each file: a sub-task's before what follows it."""
    inner = {subtask["id"]: subtask["messages"] for subtask in values.get("subtasks", ())}
    parents = values.get("parents", ())
    outer = [subtask["messages"] for subtask in parents] + [values.get("messages", [])]
    for parent, messages in zip(parents, outer[1:], strict=True):
        inner[parent["call"]["id"]] = messages
    yield from _walk(deps, outer[0], inner)


def _walk(
    deps: AgentDeps, messages: Sequence[Mapping[str, Any]], inner: Mapping[str, Any]
) -> Iterator[tuple[str, Done]]:
    results = {each["tool_call_id"]: each for each in messages if each["type"] == "tool"}
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield from _walk(deps, inner.get(call["id"], ()), inner)
            result = results.get(call["id"], {"status": "error"})
            if result["status"] != "error":
                artifact = result.get("artifact")
                artifact = artifact if isinstance(artifact, dict) else {}
                args = artifact.get("changed_to", call["args"])
                if (path := _find_path(deps, call["name"], args)) is not None:
                    yield path, (args, artifact)


def _find_path(deps: AgentDeps, name: str, args: Mapping[str, Any]) -> str | None:
    try:
        tool = deps.toolbox[name]
        if not tool.spec.effect.changes_files or not tool.spec.paths:
            return None
        return str(deps.toolbox.check(tool, args)[tool.spec.paths[0]])
    except InvalidCallError:
        return None


def _compare(deps: AgentDeps, path: str, done: list[Done]) -> FileChange:
    try:
        exists = os.path.lexists(deps.toolbox.workspace.root / path)
        now = deps.toolbox.workspace.read(path) if exists else ""
    except ToolFailedError as error:
        return _say(path, to_one_line(str(error)))
    try:
        before = _undo(now, done)
    except LookupError:
        return _say(path, "what it was before is not known") | {"after": now[:100_000]}
    change = compare_texts(path, before, now)
    return change if exists else change | {"problem": "the file is gone"}


def _undo(now: str, done: list[Done]) -> str | None:
    """The text before the first change; raises ``LookupError``."""
    if not done:
        raise LookupError
    text: str | None = now
    for args, artifact in reversed(done):
        if "replaced" in artifact:
            text = artifact["replaced"]
            continue
        if text is None:
            raise LookupError
        if (edits := read_replacements(args)) is None:
            raise LookupError
        for old, new, replace_all in reversed(edits):
            if not new or replace_all or text.count(new) != 1:
                raise LookupError
            text = text.replace(new, old)
    return text


def _say(path: str, problem: str) -> FileChange:
    return FileChange(path=to_one_line(path), before="", after="", lines=[], problem=problem)
