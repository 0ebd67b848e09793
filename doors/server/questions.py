"""``ROUTES``: the question that waits in a thread, as a client shows it to a person."""

import asyncio
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from doors.server.thread_modes import call_server, pass_on
from graph.approvals.previews import Preview, preview_call
from graph.configuration.cache import get_served
from graph.deps import AgentDeps


async def read_question(request: Request) -> Response:
    """What each call will do: the diff of an edit, the tools a switch gains.

    ---
    summary: What waits for a person, with previews
    tags: [Modes]
    responses: {"200": {description: "question, and a preview (or null) of each call"}}
    """
    answer = await call_server(request, "GET", f"/threads/{request.path_params['id']}/state")
    if answer.status_code != httpx.codes.OK:
        return pass_on(answer)
    state = answer.json()
    deps = (await get_served()).deps
    return JSONResponse(await asyncio.to_thread(_show, deps, state))


def _show(deps: AgentDeps, state: dict[str, Any]) -> dict[str, Any]:
    values, interrupts = state["values"], state["interrupts"]
    if not interrupts or values.get("mode") not in deps.catalog:
        return {"question": None, "previews": []}
    asked = interrupts[0]["value"]
    previews: list[Preview | None] = [
        preview_call(deps, call, values["mode"], values.get("written", ()))
        for call in asked["action_requests"]
    ]
    return {"question": asked["question"], "previews": previews}


ROUTES = [Route("/threads/{id}/question", read_question, methods=["GET"])]
