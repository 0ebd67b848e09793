"""``ROUTES``: the modes there are, a thread's mode, limit and approvals, and what it remembers.

They ask the server's own routes, which decide who may do what to which thread. The YAML in the
docstrings is for ``/docs``.
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import cast
from uuid import uuid4

import httpx
from langchain_core.messages.utils import convert_to_messages
from langgraph.store.base import BaseStore
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from modeshift.calls.question import judge_question
from modeshift.calls.remembered import ALL, forget, list_remembered, put_settings
from modeshift.calls.ways import list_ways_out
from modeshift.configuration.loading import get_served, get_served_cache
from modeshift.configuration.workspaces import KEY, Workspaces
from modeshift.modes.edges.edge_table import Way
from modeshift.modes.edges.edges import parse_condition
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.phases import Phase
from modeshift.server.checkpointer import database, is_opened
from modeshift.storage.kept_threads import spell_thread
from modeshift.storage.threads import read_newest
from modeshift.threads.checks import check_settings
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import REVISION, RIGHTS, SETTINGS, Mailbox, StateValues
from modeshift.threads.state import State

OURSELVES = "modeshift"


async def list_modes(request: Request) -> Response:
    """The modes to choose from; with ``?thread=`` in that thread's workspace.

    ---
    summary: The modes there are
    tags: [Modes]
    responses: {"200": {description: "The modes, the default one first: their tools, where the
      model may ask to go from there (to, is_task, when, asks), whether a person alone enters it"}}
    """
    deps = await get_deps(request)
    return JSONResponse([_describe(deps, slug) for slug in deps.catalog])


async def show_chart(request: Request) -> Response:
    """The phases of a turn, and what leads from one to another; the edges between modes.

    ---
    summary: The state machine
    tags: [Modes]
    responses:
      "200": {description: "phases, edges as [source, event, target], ways between modes, those
        from which not every mode is open, whether a tool has files, approvals (value, name,
        sentence, is_default)"}
    """
    deps = await get_deps(request)
    return JSONResponse(
        {
            "phases": deps.chart.phases,
            "edges": list(deps.chart.edges),
            "ways": [
                {"source": source, "target": target, "way": way.value, **asdict(edge)}
                | {"facts": edge.facts, "tree": edge.when and parse_condition(edge.when).tree}
                for way in (Way.ASK, Way.TASK)
                for source, target, edge in deps.edges.list_edges(way)
            ],
            "has_files": deps.toolbox.has_workspace,
            "limited": [slug for slug in deps.catalog if deps.edges.is_limited(slug, Way.ASK)],
            "approvals": [
                {**asdict(words), "is_default": value == deps.approvals}
                for value, words in deps.approval_words.items()
            ],
        }
    )


async def read_mode(request: Request) -> Response:
    """The thread's settings, with those of the host that its run has not taken in yet.

    ---
    summary: A thread's mode, limit and approvals
    tags: [Modes]
    responses: {"200": {description: "mode, limit, approvals; is_pending until the run has them;
      remembered, the calls that run unasked as somebody has said always"}}
    """
    thread = await call_thread(request, "GET")
    if not thread.is_success:
        return pass_on(thread)
    deps, mailbox = await _get_parts(request)
    values, news = await _read(request, mailbox)
    return JSONResponse(_show(deps, values, news, is_pending=bool(news)))


async def set_mode(request: Request) -> Response:
    """Set what holds from a run's next step on; a question that changes by it is withdrawn.

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
              forget: {type: array, items: {type: string},
                description: 'ids in "remembered", or "all"'}
    responses:
      "200": {description: As GET; "begun" names the tools of calls that had begun and go on}
      "404": {description: No such thread}
      "422": {description: Names what there is}
    """
    deps, mailbox = await _get_parts(request)
    thread = request.path_params["id"]
    settings = check_settings(deps, await read_body(request))
    if not settings:
        raise InvalidInputError(f"give one of: {', '.join(SETTINGS)}")
    # This changes nothing: it fails for who may not change the thread, and so not set its mode.
    changed = await call_thread(request, "PATCH", body={"metadata": {}})
    if not changed.is_success:
        return pass_on(changed)
    await put_settings(mailbox, thread, settings, partial(_read, request, mailbox))
    begun = await deps.started_calls.journal.list_going(thread)
    values, news = await _read(request, mailbox)
    is_pending = not await _take_in(request, deps, values, news)
    shown = _show(deps, values, news, is_pending=is_pending)
    return JSONResponse({**shown, "begun": begun})


async def _take_in(
    request: Request, deps: AgentDeps, values: StateValues, news: StateValues
) -> bool:
    """Write the settings into the state; False if the present run, or the next, has to do it."""
    if not values:
        return False
    update, given = dict(news), [*values.get("forget", ()), *news.get("forget", ())]
    if given:
        waiting = list_remembered({"parents": values.get("parents", ())}, {})
        if any({ALL, each["id"]} & {*given} for each in waiting):
            return False  # those conversations have messages: ``intake`` writes them
        update |= forget(cast("State", {**values, "parents": []}), given)
    phase = values.get("phase", Phase.IDLE)
    if phase != Phase.IDLE:
        state = (await call_thread(request, "GET", "/state")).json()
        if state.get("interrupts"):
            if phase != Phase.REVIEWING or await _is_same_question(deps, state["values"], update):
                return False
            update["phase"] = Phase.IDLE.value
    # The server refuses it while a run goes on.
    written = await call_thread(request, "POST", "/state", {"values": update, "as_node": "intake"})
    return written.is_success


async def _is_same_question(deps: AgentDeps, values: StateValues, update: StateValues) -> bool:
    """Whether ``review`` will find that it is the same question after the update."""
    state = cast("State", {**values, **update, "messages": convert_to_messages(values["messages"])})
    return state["mode"] in deps.catalog and await judge_question(deps, state) is not None


async def create_thread(request: Request) -> Response:
    """As ``POST /threads``, with settings for its first run; ``workspace`` is kept for good.

    ---
    summary: Create a thread with a mode, a limit, approvals or a workspace
    tags: [Modes]
    responses: {"200": {description: "The thread, as POST /threads answers it, and what was set"}}
    """
    deps, mailbox = await _get_parts(request)
    body = await read_body(request)
    settings, workspace = (await get_served_cache()).settings, body.pop(KEY, None)
    places = Workspaces(settings, mailbox)
    of_langgraph = {"thread_id", "metadata", "if_exists", "ttl", "supersteps"}
    # All else: a limit that is misspelt would be none.
    checked = check_settings(deps, {key: body.pop(key) for key in body.keys() - of_langgraph})
    thread = str(body.setdefault("thread_id", str(uuid4())))
    choice, chosen = (thread, str(request.user.identity), workspace), None
    if workspace is not None or settings.workspaces is not None:
        chosen = await places.choose(*choice)
    created = await call_server(request, "POST", "/threads", body)
    if not created.is_success:
        return pass_on(created)
    if chosen is not None:
        try:
            await places.keep(*choice)
        except InvalidInputError:
            if body.get("if_exists") != "do_nothing":  # so it is new, and ours
                await call_server(request, "DELETE", f"/threads/{thread}")
            raise
    if checked:
        await mailbox.put(thread, checked)
    named = {} if chosen is None else {KEY: chosen}
    return JSONResponse({**created.json(), **checked, **named})


async def get_deps(request: Request) -> AgentDeps:
    """What the nodes of the request's thread share; of another user's thread, the defaults."""
    thread = request.path_params.get("id") or request.query_params.get("thread", "")
    thread = thread and spell_thread(thread)
    store = await get_request_store(request)
    return (await get_served(thread, str(request.user.identity), store)).deps


async def _get_parts(request: Request) -> tuple[AgentDeps, Mailbox]:
    return await get_deps(request), Mailbox(await get_request_store(request))


async def get_request_store(request: Request) -> BaseStore:
    """The store that the server passes to the nodes: Aegra's, or LangGraph's."""
    store: BaseStore | None = getattr(request.app.state, "store", None)
    if store is None:
        from langgraph_api.store import get_store  # noqa: PLC0415  # which Aegra has not

        store = await get_store()
    return store


async def _read(request: Request, mailbox: Mailbox) -> tuple[StateValues, StateValues]:
    """The state, and the settings that it has not taken in yet."""
    if is_opened():
        values = await read_newest(database, request.path_params["id"])
    if not is_opened() or values.get("subtask"):  # who waits for it is in earlier checkpoints
        state = await call_thread(request, "GET", "/state")
        values = dict(state.json()["values"] or {})
    return values, await mailbox.find_news(request.path_params["id"], values.get(REVISION, {}))


async def read_body(request: Request, keys: Iterable[str] = SETTINGS) -> dict[str, object]:
    """The request's JSON object, which may have these ``keys``; raises ``InvalidInputError``."""
    try:
        body = await request.json()
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise InvalidInputError(f"the body is an object with: {', '.join(keys)}")
    return dict(body)


async def call_server(
    request: Request, method: str, path: str, body: object = None
) -> httpx.Response:
    """Ask the server itself as the client of the request: it decides what the client may do."""
    names = ("authorization", "x-api-key", "origin")
    headers = {name: value for name in names if (value := request.headers.get(name))}
    headers["user-agent"] = OURSELVES  # what is read here, the client has not seen
    inner = httpx.ASGITransport(request.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=inner, base_url=str(request.base_url)) as client:
        return await client.request(method, path, headers=headers, json=body)


async def call_thread(
    request: Request, method: str, part: str = "", body: object = None
) -> httpx.Response:
    """``call_server`` for the thread that the request names, or a part such as ``/state``."""
    return await call_server(request, method, f"/threads/{request.path_params['id']}{part}", body)


def pass_on(answer: httpx.Response) -> Response:
    """The server's own answer, most often a refusal."""
    return Response(answer.content, answer.status_code, media_type="application/json")


def _show(
    deps: AgentDeps, values: StateValues, news: StateValues, *, is_pending: bool
) -> dict[str, object]:
    now = {"mode": deps.catalog.default, "limit": None, "approvals": deps.approvals.value}
    now |= {key: values[key] for key in RIGHTS if key in values}
    now |= {key: news[key] for key in RIGHTS if key in news}
    return {**now, "remembered": list_remembered(values, news), "is_pending": is_pending}


def _describe(deps: AgentDeps, slug: str) -> dict[str, object]:
    mode, tools = deps.catalog[slug], deps.seat(slug).tools
    return {
        "slug": slug,
        "name": mode.name,
        "description": mode.description,
        "when_to_use": mode.when_to_use,
        "level": mode.level.value,
        "file": mode.file,
        "is_default": slug == deps.catalog.default,
        "groups": [grant.model_dump(by_alias=True, exclude_none=True) for grant in mode.groups],
        "tools": list(tools),
        "risk": deps.find_risk(mode)[0],
        "subjects": {
            name: subject for name in tools if (subject := deps.toolbox[name].spec.subject)
        },
        "model": mode.model or deps.models.default,
        "ways": list_ways_out(deps, slug),
        "then": mode.then,
        "within": deps.list_within(mode),
        "by_hand": slug in deps.edges.by_hand,
        "problem": deps.models.problem(mode),
    }


ROUTES = [
    Route("/modes", list_modes, methods=["GET"]),
    Route("/modeshift/chart", show_chart, methods=["GET"]),
    Route("/threads/{id}/mode", read_mode, methods=["GET"]),
    Route("/threads/{id}/mode", set_mode, methods=["PATCH"]),
    Route("/modeshift/threads", create_thread, methods=["POST"]),
]
