"""``AUTH_TOKEN`` on the real dev server: no token, nothing; one user, no other's threads."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from httpx import HTTPStatusError
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from tests.clients.server.test_gate import ask
from tests.harness.conversation import APPROVE
from tests.harness.server import Server, Thread, running

ALICE, BOB = "alices-own-token", "bobs-very-own-token"
SETTINGS = {
    "LISTEN": "127.0.0.2",
    "AUTH_TOKEN": f"alice:{ALICE},bob:{BOB}",
    "DEFAULT_MODE": "code",
}
"""On another address, with two users."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("clone"), **SETTINGS) as server:
        yield server


Owners = tuple[LangGraphClient, LangGraphClient]


@pytest.fixture
async def owners(server: Server) -> AsyncIterator[Owners]:
    """Alice and Bob."""
    async with server.get_client(ALICE) as alice, server.get_client(BOB, "bearer") as bob:
        yield alice, bob


async def status_of(attempt: Awaitable[Any]) -> int:
    """The status of a refusal; the SDK has two kinds of error for one."""
    with pytest.raises((APIStatusError, HTTPStatusError)) as caught:
        await attempt
    error = caught.value
    assert isinstance(error, APIStatusError | HTTPStatusError)
    return error.response.status_code


WRONG = ["Bearer", f"Bearer {ALICE}x", f"Bearer {ALICE[:-1]}", f"Bearer alice:{ALICE}", ALICE]
ROUTES = f"""
    POST /threads
    POST /threads/search
    POST /assistants/search
    POST /runs/wait
    POST /runs/stream
    PUT /store/items
    GET /modes
    POST /modeshift/threads
    PATCH /threads/{UUID(int=1)}/mode
    GET /threads/{UUID(int=1)}/undo
    POST /threads/{UUID(int=1)}/undo
    GET /threads/{UUID(int=1)}/state
"""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        *({"Authorization": given} for given in (*WRONG, f"Basic {ALICE}")),
        {"x-auth-scheme": "langsmith", "x-api-key": "anything"},
    ],
)
def test_without_a_token_nothing_is_answered(server: Server, headers: dict[str, str]) -> None:
    body = '{"assistant_id": "agent", "input": {"messages": []}}'
    for method, path in map(str.split, ROUTES.strip().splitlines()):
        sent = body if method != "GET" else None
        status, text = ask(server, method, path, sent, Content_Type="application/json", **headers)
        assert status == 401, (path, text)


async def test_a_thread_belongs_to_whoever_made_it(server: Server, owners: Owners) -> None:
    alice, bob = owners
    thread = await Thread.new(alice)
    await thread.say("write pwned: x")
    assert await thread.waiting()
    assert thread.id not in [listed["thread_id"] for listed in await bob.threads.search()]
    command: Any = {"resume": {"decisions": [APPROVE]}}
    digest = (await alice.http.get(f"/threads/{thread.id}/undo"))["digest"]
    stolen: Any = {"owner": "bob"}
    attempts: list[Awaitable[Any]] = [
        bob.threads.get(thread.id),
        bob.threads.get_state(thread.id),
        bob.threads.update(thread.id, metadata=stolen),
        bob.threads.delete(thread.id),
        bob.runs.wait(thread.id, "agent", command=command),
        bob.threads.update_state(thread.id, {"mode": "ask"}),
        bob.threads.get_history(thread.id),
        *(bob.http.get(f"/threads/{thread.id}/{path}") for path in ("mode", "question", "undo")),
        bob.http.post(f"/threads/{thread.id}/undo", json={"message": "last", "digest": digest}),
        bob.http.patch(f"/threads/{thread.id}/mode", json={"mode": "code"}),
        bob.threads.create(thread_id=thread.id, if_exists="do_nothing"),
    ]
    for attempt in attempts:
        assert await status_of(attempt) in (403, 404, 409)
    # Not even whether a question is open there.
    assert await status_of(bob.runs.wait(thread.id, "agent", command=command)) == 404
    stream = f"/threads/{thread.id}/stream"
    assert "not found" in ask(server, "GET", stream, Authorization=f"Bearer {BOB}")[1]
    assert not [*server.workspace.rglob("pwned")]
    await thread.decide(APPROVE)
    assert [*server.workspace.rglob("pwned")]


async def test_what_is_anothers_is_not_copied_and_its_runs_are_not_shown(owners: Owners) -> None:
    alice, bob = owners
    thread = await Thread.new(alice)
    for attempt in (
        bob.threads.copy(thread.id),
        bob.runs.wait(thread.id, "agent", input=None, if_not_exists="create"),
        bob.runs.list(thread.id),
    ):
        assert await status_of(attempt) in (403, 404, 409)


async def test_an_assistant_belongs_to_whoever_made_it(owners: Owners) -> None:
    alice, bob = owners
    (served,) = await bob.assistants.search()
    assert served["name"] == "agent"
    mine = (await alice.assistants.create("agent", name="mine"))["assistant_id"]
    thread = await Thread.new(bob)
    broken: Any = {"recursion_limit": 1}
    system: Any = {"created_by": "system"}
    for attempt in (
        bob.assistants.get(mine),
        bob.assistants.get_versions(mine),
        bob.assistants.update(mine, config=broken),
        bob.assistants.set_latest(mine, 1),
        bob.assistants.delete(mine),
        bob.runs.wait(thread.id, mine, input={"messages": []}),
        bob.assistants.update(served["assistant_id"], config=broken),
        bob.assistants.set_latest(served["assistant_id"], 1),
        bob.assistants.delete(served["assistant_id"]),
        bob.crons.create(mine, schedule="0 0 1 1 *", input={"messages": []}),
        bob.assistants.create("agent", name="bob's", metadata=system),
        alice.assistants.update(mine, metadata=system),
    ):
        assert await status_of(attempt) in (403, 404)
    assert len(await bob.assistants.search()) == 1
    for assistant in (mine, served["assistant_id"], "agent"):
        await alice.runs.wait(None, assistant, input={"messages": []})
    await alice.assistants.delete(mine)


async def test_a_store_belongs_to_whoever_filled_it(owners: Owners) -> None:
    alice, bob = owners
    await alice.store.put_item(("notes",), "one", {"text": "mine"})
    theirs: Any = await bob.store.search_items(("notes",))
    mine: Any = await alice.store.search_items(("notes",))
    assert [[item["key"] for item in items["items"]] for items in (theirs, mine)] == [[], ["one"]]


def test_no_token_is_shown_in_the_log_or_on_the_page(server: Server) -> None:
    status, page = ask(server, "GET", "/app", Accept="text/html", Authorization=f"Bearer {ALICE}")
    assert (status, page.startswith("<!doctype html>")) == (200, True)
    text = server.log.read_text()
    assert "token      asked for\n" in text
    assert ALICE not in text + page


async def test_without_make_dev_the_gate_stays_closed(tmp_path: Path) -> None:
    """``langgraph dev --host`` does not ask the settings; the gate sees where it listens."""
    server = Server(tmp_path)
    (tmp_path / "workspace").mkdir()
    server.host = "127.0.0.2"
    command = ["langgraph_cli", "dev", "--no-browser", "--no-reload", "--host", server.host]
    server.start(*command, "--port", str(server.port))
    try:
        async with server.client as client:
            assert await status_of(client.assistants.search()) == 403
    finally:
        server.kill()
