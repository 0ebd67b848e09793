"""The routes that show what waits for a person, and the files that a thread has written."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from modeshift.calls.file_changes import list_changes
from modeshift.calls.previews import Preview, preview_call
from modeshift.server.thread_modes import call_server, get_deps, pass_on
from modeshift.threads.deps import AgentDeps
from modeshift.threads.routing import is_cut_off


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
