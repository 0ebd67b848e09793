"""``AUTH_TOKEN`` on Aegra: no token, nothing; one user, no other's threads."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.doors.server.test_auth import (
    ALICE,
    BOB,
    client_of,
    status_of,
    test_a_store_belongs_to_whoever_filled_it,
    test_without_a_token_nothing_is_answered,
)
from tests.harness.aegra import AegraServer
from tests.harness.conversation import APPROVE
from tests.harness.server import Thread

__all__ = [
    "test_a_store_belongs_to_whoever_filled_it",
    "test_without_a_token_nothing_is_answered",
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[AegraServer]:
    server = AegraServer(tmp_path_factory.mktemp("clone"), database)
    server.host = "127.0.0.2"
    tokens = f"alice:{ALICE},bob:{BOB}"
    server.serve(workers=1, LISTEN=server.host, AUTH_TOKEN=tokens, DEFAULT_MODE="code")
    yield server
    server.kill()


@pytest.fixture
async def alice(server: AegraServer) -> AsyncIterator[LangGraphClient]:
    async with client_of(server, f"Bearer {ALICE}") as client:
        yield client


@pytest.fixture
async def bob(server: AegraServer) -> AsyncIterator[LangGraphClient]:
    async with client_of(server, f"bearer {BOB}") as client:
        yield client


async def test_a_thread_belongs_to_whoever_made_it(
    server: AegraServer, alice: LangGraphClient, bob: LangGraphClient
) -> None:
    thread = await Thread.new(alice)
    await thread.say("write pwned: x")
    assert await thread.waiting()
    assert thread.id not in [each["thread_id"] for each in await bob.threads.search()]
    assert await bob.runs.list(thread.id) == []
    command: Any = {"resume": {"decisions": [APPROVE]}}
    stolen: Any = {"owner": "bob"}
    for attempt in (
        bob.threads.get(thread.id),
        bob.threads.get_state(thread.id),
        bob.threads.update(thread.id, metadata=stolen),
        bob.threads.delete(thread.id),
        bob.runs.wait(thread.id, "agent", command=command),
        bob.threads.update_state(thread.id, {"mode": "ask"}),
        bob.threads.get_history(thread.id),
        bob.http.get(f"/threads/{thread.id}/mode"),
        bob.http.get(f"/threads/{thread.id}/question"),
        bob.http.get(f"/threads/{thread.id}/stream"),
        bob.http.patch(f"/threads/{thread.id}/mode", json={"mode": "code"}),
        bob.threads.create(thread_id=thread.id, if_exists="do_nothing"),
    ):
        assert await status_of(attempt) in (403, 404, 409)
    assert not (server.workspace / "pwned").exists()
    await thread.decide(APPROVE)
    assert (server.workspace / "pwned").exists()
    assert ALICE not in server.log.read_text()
