"""What a client may send wrongly: a 422 says what is wrong, nothing is kept, and all goes on."""

import asyncio
import json
from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import pytest

from modeshift.modes.errors import InvalidInputError
from modeshift.server.auth import check_config
from tests.harness.conversation import APPROVE
from tests.harness.server import Thread, Web

OF_CONFIG: dict[str, list[Any]] = {
    "metadata": [5, True, [["a", "b"]]],
    "callbacks": [5, "x", ["x"], {"a": 5}],
    "tags": ["x", [5], {"a": 5}],
    "run_name": [5],
    "max_concurrency": ["x", 0, 1.5],
    "recursion_limit": ["x", 0, 1.5],
    "configurable": [5, [5]],
    "run_id": ["x"],
    "store": [{"a": 5}],
}
OF_CONFIGURABLE: dict[str, list[Any]] = {
    "checkpoint_id": [5, {"a": 1}],
    "checkpoint_ns": [[1]],
    "checkpoint_map": ["x", None, {"a": 1}],
    "__pregel_checkpointer": [None],
    "__pregel_resuming": [True],
}
CONFIGS = [{key: value} for key, values in OF_CONFIG.items() for value in values]
PLACES = [{key: value} for key, values in OF_CONFIGURABLE.items() for value in values]
COMMANDS: list[dict[str, Any]] = [
    {"goto": "x"},
    {"goto": {"node": "ask", "input": 5}},
    {"update": [5]},
    {"update": {"messages": 5}},
    {"update": {"phase": "idle"}},
    {"update": [["due_calls", []]]},
]
HELLO = {"messages": [{"role": "user", "content": "hello"}]}
WRONG: list[dict[str, Any]] = [
    {"config": CONFIGS[0]},
    {"config": {"configurable": PLACES[0]}},
    {"context": PLACES[0]},
    {"checkpoint": PLACES[0]},
    *({"command": command, "input": None} for command in COMMANDS),
]


def test_a_wrong_config_is_refused() -> None:
    for config in (*CONFIGS, *({"configurable": place} for place in PLACES)):
        with pytest.raises(InvalidInputError, match="config does not fit"):
            check_config(config)
    for place in PLACES:
        with pytest.raises(InvalidInputError, match="config does not fit"):
            check_config({}, place)


async def test_a_run_with_a_wrong_body_leaves_its_thread_as_it_was(http: httpx.AsyncClient) -> None:
    at_once = asyncio.Semaphore(4)

    async def attempt(body: dict[str, Any], way: str) -> str | None:
        thread = str(uuid4())
        run = {"assistant_id": "agent", "input": HELLO, "if_not_exists": "create", **body}
        if way == "":
            await http.post("/threads", json={"thread_id": thread})
        async with at_once:
            answer = await http.post(f"/threads/{thread}/runs{way}", json=run)
            await http.post("/threads", json={"thread_id": thread, "if_exists": "do_nothing"})
            state = await http.get(f"/threads/{thread}/state")
            history = await http.post(f"/threads/{thread}/history", json={})
        statuses = (answer.status_code, state.status_code, history.status_code)
        if statuses == (422, 200, 200) and "detail" in answer.text and not state.json()["values"]:
            return None
        return f"{json.dumps(body)} {way}: {statuses} {answer.text[:100]}"

    ways = ("", "/wait", "/stream")
    attempts = [attempt(body, ways[place % 3]) for place, body in enumerate(WRONG)]
    assert [statuses for statuses in await asyncio.gather(*attempts) if statuses] == []
    assert (await http.post("/threads/search", json={"limit": 1000})).status_code == 200


async def test_what_fits_is_taken(web: Web) -> None:
    thread = await Thread.new(web.client)
    config: Any = {
        "tags": ["a"],
        "metadata": {"a": [5]},
        "recursion_limit": 50,
        "max_concurrency": 2,
        "run_name": "a name",
        "configurable": {"my own": [5], "checkpoint_ns": ""},
    }
    await thread.run(input=HELLO, config=config)
    assert (thread.error, thread.nodes) == (None, ["intake", "ask"])


async def test_an_assistant_or_cron_with_a_wrong_config_is_not_kept(web: Web) -> None:
    http = web.http
    assistant = {"graph_id": "agent", "name": "mine"}
    mine = f"/assistants/{(await http.post('/assistants', json=assistant)).json()['assistant_id']}"
    before = (await http.get(mine)).json()
    crons = (await http.post("/runs/crons/count", json={})).json()
    cron = {"assistant_id": "agent", "schedule": "0 0 1 1 *", "input": HELLO}
    for body in ({"config": CONFIGS[0]}, {"context": PLACES[0]}):
        for answer in (
            await http.post("/assistants", json={**assistant, **body}),
            await http.patch(mine, json=body),
            await http.post("/runs/crons", json={**cron, **body}),
        ):
            assert answer.status_code == 422, (body, answer.request.url, answer.text)
    assert (await http.get(mine)).json() == before
    assert (await http.post("/runs/crons/count", json={})).json() == crons
    assert (await http.delete(mine)).status_code == 204


async def test_nobody_changes_the_served_assistant_without_a_token(web: Web) -> None:
    http = web.http
    (served,) = await web.client.assistants.search(metadata={"created_by": "system"})
    path = f"/assistants/{served['assistant_id']}"
    for answer in (
        await http.patch(path, json={"config": {"recursion_limit": 1}}),
        await http.patch(path, json={"name": "mine"}),
        await http.post(f"{path}/latest", json={"version": 1}),
        await http.delete(path),
    ):
        assert (answer.status_code, "cannot be changed" in answer.text) == (403, True)
    assert await web.client.assistants.get(served["assistant_id"]) == served


FORGED: list[dict[str, Any]] = [
    *({"phase": phase} for phase in ("acting", "switching", "looking_ahead", "nowhere")),
    {"subtask": {"id": "a", "mode": "ask", "message": "b", "depth": 1, "approvals": "auto"}},
    {"due_calls": [[]], "phase": "acting"},
]


async def test_a_forged_phase_or_subtask_is_explained_and_changes_nothing(web: Web) -> None:
    thread = await web.say("write forged.txt: x", mode="code")
    before = await web.client.threads.get_state(thread.id)
    for forged, node in product(FORGED, (None, "intake", "code", "review")):
        values = {"values": forged, "as_node": node} if node else {"values": forged}
        answer = await web.http.post(f"/threads/{thread.id}/state", json=values)
        assert (answer.status_code, "detail" in answer.text) == (422, True), answer.text
    assert await web.client.threads.get_state(thread.id) == before
    await thread.decide(APPROVE)
    web.file("forged.txt").unlink()
