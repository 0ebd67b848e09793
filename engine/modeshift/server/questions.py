"""The routes for what waits in a thread, for the files that it has written, and for undo."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from modeshift.calls.previews import list_changes, preview_call
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_data import JsonObject
from modeshift.server.thread_modes import (
    call_thread,
    get_deps,
    get_request_store,
    pass_on,
    read_body,
)
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import is_cut_off
from modeshift.turns.undo import LAST, RUNS, Undo


async def read_question(request: Request) -> Response:
    """What each call will do: the diff of an edit, the tools a switch gains.

    ---
    summary: What waits for a person, with previews
    tags: [Modes]
    responses: {"200": {description: "question, a preview (or null) of each call, is_cut_off"}}
    """
    thread = await call_thread(request, "GET")
    has_run = thread.is_success and thread.json()["status"] == "busy"
    return await _answer(request, partial(_show_question, has_run=has_run))


async def list_files(request: Request) -> Response:
    """List the files, each with its diff since the thread began, as far as that is known.

    ---
    summary: The files that a thread has written
    tags: [Modes]
    responses: {"200": {description: "path, before (null: new), after, lines of the diff"}}
    """
    id = request.path_params["id"]
    return await _answer(request, lambda deps, state: list_changes(deps, id, state["values"]))


async def _answer(request: Request, show: Callable[[AgentDeps, JsonObject], object]) -> Response:
    answer = await call_thread(request, "GET", "/state")
    if not answer.is_success:
        return pass_on(answer)
    state = answer.json()
    state["values"] = state.get("values") or {}  # a list, as long as there are none
    deps = await get_deps(request)
    return JSONResponse(await asyncio.to_thread(show, deps, state))


def _show_question(deps: AgentDeps, state: JsonObject, *, has_run: bool) -> JsonObject:
    values, interrupts = state["values"], state["interrupts"]
    if not interrupts:
        cut_off = not has_run and is_cut_off(values, state["tasks"], interrupts)
        return {"question": None, "previews": [], "is_cut_off": cut_off}
    asked = interrupts[0]["value"]
    previews = [
        preview_call(deps, call, str(values.get("mode")), values.get("written", ()))
        for call in asked["action_requests"]
    ]
    return {"question": asked["question"], "previews": previews, "is_cut_off": False}


BODY = ("message", "digest")


async def undo_message(request: Request) -> Response:
    """GET shows what an undo would do; POST, with the digest of that, does it.

    The message is an id, ``last``, or ``back``: to before the last undo.

    ---
    summary: Put files and conversation back to before a message
    tags: [Modes]
    parameters: [{name: message, in: query, schema: {type: string}}]
    responses: {"200": {description: "files, by path what is done, or why nothing is; stays, what
      cannot go back; rights afterwards; digest, for POST with message"}}
    """
    id, is_shown = request.path_params["id"], request.method != "POST"
    given = dict(request.query_params) if is_shown else await read_body(request, BODY)
    # This changes nothing: it fails for who may not change the thread, and so may not undo in it.
    thread = await call_thread(request, "PATCH", body={"metadata": {}})
    if not thread.is_success:
        return pass_on(thread)
    if thread.json()["status"] == "busy":
        raise InvalidInputError(RUNS)
    store, deps = await get_request_store(request), await get_deps(request)
    undo = Undo(deps, ServedThread(request), id, store)
    digest = None if is_shown else str(given.get("digest", ""))
    if digest == "":
        raise InvalidInputError("the body has no digest: GET shows one, with what the undo does")
    return JSONResponse(await undo.run(str(given.get("message", LAST)), digest))


@dataclass(frozen=True)
class ServedThread:
    """The thread as the server shows it to the client of the request."""

    request: Request

    async def aget_state(self, config: RunnableConfig) -> StateSnapshot:
        """The state now, or at a checkpoint."""
        state = await self._call("GET", config["configurable"].get("checkpoint_id", ""))
        here, before = ({"configurable": state[f"{of}checkpoint"]} for of in ("", "parent_"))
        parent: Any = before if before["configurable"] else None
        values, when = dict(state["values"] or {}), state["created_at"]
        return StateSnapshot(values, (), here, None, when, parent, (), ())  # type: ignore[arg-type]

    async def aupdate_state(self, config: RunnableConfig, values: object, as_node: str) -> None:
        """Write values into the state of a checkpoint, as the node ``as_node``."""
        given = {"values": values, "as_node": as_node, "checkpoint": config["configurable"]}
        await self._call("POST", body=given)

    async def _call(self, method: str, of: str = "", body: object = None) -> JsonObject:
        answer = await call_thread(self.request, method, f"/state/{of}".rstrip("/"), body)
        if not answer.is_success:
            raise InvalidInputError(f"the server refuses: {answer.text}")
        return dict(answer.json())


ROUTES = [
    Route("/threads/{id}/undo", undo_message, methods=["GET", "POST"]),
    Route("/threads/{id}/question", read_question, methods=["GET"]),
    Route("/threads/{id}/files", list_files, methods=["GET"]),
]
