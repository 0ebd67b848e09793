"""``ROUTES``: the modes there are, and a thread's mode, limit and approvals.

Beside the server's own routes, and on top of them: who may do what to which thread is for those to
say. The YAML in the docstrings is for ``/docs``.
"""

from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.configuration.cache import get_served
from graph.deps import AgentDeps
from graph.entry.checks import SETTINGS, build_settings_check
from graph.threads.mailbox import REVISION, Mailbox
from modes.errors import InvalidInputError, UserError
from modes.machine import PHASE_EDGES, Phase


async def list_modes(_: Request) -> Response:
    """What there is to choose from.

    ---
    summary: The modes there are
    tags: [Modes]
    responses: {"200": {description: "The modes, the default one first, and their tools"}}
    """
    deps = (await get_served()).deps
    return JSONResponse([_describe(deps, slug) for slug in deps.catalog])


async def show_chart(_: Request) -> Response:
    """The phases of a turn, and what leads from one to another.

    ---
    summary: The state machine
    tags: [Modes]
    responses: {"200": {description: "phases, edges as [source, event, target], approvals"}}
    """
    deps = (await get_served()).deps
    return JSONResponse(
        {"phases": list(Phase), "edges": list(PHASE_EDGES), "approvals": deps.approvals.value}
    )


async def read_mode(request: Request) -> Response:
    """Also what the host has set and the thread's run has not taken in yet.

    ---
    summary: A thread's mode, limit and approvals
    tags: [Modes]
    responses: {"200": {description: "mode, limit, approvals; is_pending until the run has them"}}
    """
    state = await call_server(request, "GET", f"{_get_thread(request)}/state")
    if state.status_code != httpx.codes.OK:
        return pass_on(state)
    deps, mailbox = await _get_parts()
    values = state.json()["values"]
    news = await mailbox.find_news(request.path_params["id"], values.get(REVISION, 0))
    return JSONResponse(_show(deps, values, news, is_pending=bool(news)))


async def set_mode(request: Request) -> Response:
    """Holds from the next step of a run on; withdraws what waits for a person.

    ---
    summary: Set a thread's mode, limit or approvals, also while a run goes on
    tags: [Modes]
    requestBody:
      content:
        application/json:
          schema:
            type: object
            additionalProperties: false
            properties:
              mode: {type: string}
              limit: {type: [string, "null"], description: null lifts it}
              approvals: {type: string, enum: [manual, auto]}
    responses:
      "200": {description: As GET; "begun" names the tools of calls that had begun and go on}
      "404": {description: No such thread}
      "422": {description: Names what there is}
    """
    deps, mailbox = await _get_parts()
    path, thread = _get_thread(request), request.path_params["id"]
    try:
        given = _check(deps, await _read_body(request))
    except UserError as error:
        return JSONResponse({"detail": str(error)}, 422)
    if not given:
        return JSONResponse({"detail": f"give one of: {', '.join(SETTINGS)}"}, 422)
    found = await call_server(request, "GET", f"{path}/state")
    if found.status_code != httpx.codes.OK:
        return pass_on(found)
    begun = await mailbox.put(thread, given)
    values = found.json()["values"]
    news = await mailbox.find_news(thread, values.get(REVISION, 0))
    is_pending = True
    if values:  # or else the first run takes it in
        idle = {"phase": Phase.IDLE.value} if found.json()["interrupts"] else {}
        update = {"values": news | idle, "as_node": "intake"}
        # The server refuses it while a run goes on, which then takes it in.
        written = await call_server(request, "POST", f"{path}/state", update)
        is_pending = written.status_code != httpx.codes.OK
    shown = _show(deps, values, news, is_pending=is_pending)
    return JSONResponse({**shown, "begun": begun})


async def create_thread(request: Request) -> Response:
    """As ``POST /threads``, with what is set before its first run.

    ---
    summary: Create a thread with a mode, a limit or approvals
    tags: [Modes]
    responses: {"200": {description: "The thread, as POST /threads answers it, and what was set"}}
    """
    deps, mailbox = await _get_parts()
    try:
        body = await _read_body(request)
        given = _check(deps, {key: body.pop(key) for key in SETTINGS if key in body})
    except UserError as error:
        return JSONResponse({"detail": str(error)}, 422)
    created = await call_server(request, "POST", "/threads", body)
    if created.status_code != httpx.codes.OK:
        return pass_on(created)
    if given:
        await mailbox.put(created.json()["thread_id"], given)
    return JSONResponse({**created.json(), **given})


async def _get_parts() -> tuple[AgentDeps, Mailbox]:
    deps = (await get_served()).deps
    mailbox = deps.started_calls.mailbox
    if mailbox is None:
        raise RuntimeError("the served agent has a mailbox; see graph/configuration/cache.py")
    return deps, mailbox


async def _read_body(request: Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise InvalidInputError(f"the body is an object with: {', '.join(SETTINGS)}")
    return dict(body)


def _check(deps: AgentDeps, body: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = build_settings_check(deps.catalog)(body)
    if "mode" in given and (problem := deps.models.problem(deps.catalog[given["mode"]])):
        raise InvalidInputError(problem)
    return given


def _get_thread(request: Request) -> str:
    return f"/threads/{request.path_params['id']}"


async def call_server(request: Request, method: str, path: str, body: Any = None) -> httpx.Response:
    """Ask the server itself, as whoever asks us: so it is the server that says what they may."""
    names = ("authorization", "x-api-key", "origin")
    headers = {name: value for name in names if (value := request.headers.get(name))}
    inner = httpx.ASGITransport(request.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=inner, base_url=str(request.base_url)) as client:
        return await client.request(method, path, headers=headers, json=body)


def pass_on(answer: httpx.Response) -> Response:
    """The server's own answer, a refusal for the most part."""
    return Response(answer.content, answer.status_code, media_type="application/json")


def _show(
    deps: AgentDeps, values: dict[str, Any], news: dict[str, Any], *, is_pending: bool
) -> dict[str, Any]:
    now = {"mode": deps.catalog.default, "limit": None, "approvals": deps.approvals.value}
    now |= {key: values[key] for key in SETTINGS if key in values}
    now |= {key: news[key] for key in SETTINGS if key in news}
    return {**now, "is_pending": is_pending}


def _describe(deps: AgentDeps, slug: str) -> dict[str, Any]:
    mode = deps.catalog[slug]
    return {
        "slug": slug,
        "name": mode.name,
        "description": mode.description,
        "when_to_use": mode.when_to_use,
        "level": mode.level.value,
        "file": mode.file,
        "is_default": slug == deps.catalog.default,
        "groups": [grant.model_dump(by_alias=True, exclude_none=True) for grant in mode.groups],
        "tools": list(deps.list_tools(slug)),
        "model": mode.model or deps.models.default,
        "problem": deps.models.problem(mode),
    }


ROUTES = [
    Route("/modes", list_modes, methods=["GET"]),
    Route("/modeshift/chart", show_chart, methods=["GET"]),
    Route("/threads/{id}/mode", read_mode, methods=["GET"]),
    Route("/threads/{id}/mode", set_mode, methods=["PATCH"]),
    Route("/modeshift/threads", create_thread, methods=["POST"]),
]
