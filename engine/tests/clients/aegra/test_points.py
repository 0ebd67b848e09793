"""What holds on Aegra, too, by the dev server's tests; ``docs/run/engines.md`` has the others."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import APIStatusError

from modeshift.storage.database import Database
from modeshift.storage.kept_threads import DELETED
from modeshift.storage.opening import open_database
from tests.clients.server.test_gate import (
    test_a_foreign_page_cannot_read_anything,
    test_a_route_that_is_not_on_the_list_is_refused,
    test_allowed_pages_and_local_clients_get_in,
    test_what_a_web_page_sends_is_refused,
    waiting,
)
from tests.clients.server.test_server import (
    test_a_long_turn,
    test_an_answer_may_name_the_checkpoint_of_its_question_and_no_other,
    test_commands_that_wait_hold_up_no_other_thread,
    test_from_ask_to_a_file,
    test_the_graph_and_its_input_can_be_seen,
)
from tests.clients.server.test_thread_modes import (
    test_a_thread_begins_with_what_it_is_created_with,
    test_a_thread_has_its_limit_however_its_id_is_spelled,
    test_an_id_that_is_no_uuid_makes_no_thread,
    test_approvals_leave_a_question_open_by_every_way,
    test_what_does_not_fit_is_refused_and_changes_nothing,
    test_what_there_is,
)
from tests.clients.server.test_undo import test_a_message_goes_back_by_its_routes_alone
from tests.clients.server.test_wrong_bodies import (
    test_a_forged_phase_or_subtask_is_explained_and_changes_nothing,
    test_what_fits_is_taken,
)
from tests.harness.aegra import AegraServer
from tests.harness.conversation import APPROVE, REJECT
from tests.harness.server import Web

pytestmark = pytest.mark.slow


async def count_rows(database: Database, thread: str) -> int:
    """Of what is ours."""
    count = 0
    for table, column in DELETED.items():
        if await database.list_columns(table):
            query = f"SELECT count(*) FROM {table} WHERE {column} LIKE :thread"  # noqa: S608  # our names
            count += (await database.execute(query, thread=f"%{thread}"))[0][0]
    return count


async def test_a_thread_is_deleted_with_all_that_is_ours(server: AegraServer, web: Web) -> None:
    thread = await web.say("write deleted.txt: hello", mode="code")
    await thread.decide(APPROVE)
    database = open_database(server.database, Path())
    assert await count_rows(database, thread.id) > 3
    await web.client.threads.delete(thread.id)
    assert await count_rows(database, thread.id) == 0
    await database.close()
    with pytest.raises((APIStatusError, httpx.HTTPStatusError), match="not found"):
        await thread.values()


async def test_a_wrong_answer_is_explained_and_the_question_stays(web: Web) -> None:
    thread = await web.say("write wrong.txt: x", mode="code")
    await thread.decide({"type": "yes"})
    assert thread.error is not None
    assert "'yes'" in thread.error["message"]
    await thread.decide(REJECT)
    assert not await thread.waiting()


async def test_a_question_is_taken_back_that_is_another_one(web: Web) -> None:
    thread = await web.say("write taken.txt: 1", mode="code")
    assert (await web.patch(thread, limit="ask"))["is_pending"] is False
    assert not await thread.waiting()
    search = {"ids": [thread.id], "select": ["status"]}
    listed = (await web.http.post("/threads/search", json=search)).json()
    assert [each["thread_id"] for each in listed] == [thread.id]


UNSERVED = {
    "after_seconds": 60,
    "webhook": "http://127.0.0.1:9/done",
    "stream_mode": ["updates", "no-such-mode"],
}


@pytest.mark.parametrize("name", UNSERVED)
async def test_what_aegra_would_pass_over_is_refused_by_name(web: Web, name: str) -> None:
    """For every kind of run, and for a cron, which begins one later."""
    id = (await web.client.threads.create())["thread_id"]
    run = {"assistant_id": "agent", "input": {"messages": []}, name: UNSERVED[name]}
    paths = (f"/threads/{id}/runs", f"/threads/{id}/runs/stream", f"/threads/{id}/runs/wait")
    for path in (*paths, "/runs", "/runs/crons"):
        more = {"schedule": "0 0 1 1 *"} if path == "/runs/crons" else {}
        answer = await web.http.post(path, json={**run, **more})
        assert (answer.status_code, name in answer.json()["detail"]) == (422, True)
    assert await web.client.runs.list(id) == []


@pytest.mark.parametrize("label", ["", "a.b"])
async def test_a_namespace_that_is_none_is_refused(http: httpx.AsyncClient, label: str) -> None:
    """And the connection stays open."""
    answers = [
        await http.put("/store/items", json={"namespace": [label], "key": "k", "value": {}}),
        await http.post("/store/items/search", json={"namespace_prefix": [label]}),
        await http.post("/store/namespaces", json={"suffix": [label]}),
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 422]
    assert all("Namespace label" in answer.json()["detail"] for answer in answers)


async def test_the_page_hears_of_a_change(web: Web) -> None:
    assert (await web.http.get("/app")).text.startswith("<!doctype html>")
    thread = await web.say("hello")
    async with web.http.stream("GET", f"/threads/{thread.id}/stream") as answer:
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith(":")
        await web.patch(thread, mode="code")
        assert "event: state_update" in [line async for line in lines]
