"""Users, workspaces, readiness, metrics and the stop, on Aegra."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.clients.server.test_auth import (
    ALICE,
    BOB,
    owners,
    test_a_store_belongs_to_whoever_filled_it,
    test_a_thread_belongs_to_whoever_made_it,
    test_without_a_token_nothing_is_answered,
)
from tests.clients.server.test_operations import (
    HELD,
    SECRET,
    TOKEN,
    read_metrics,
    test_metrics_say_what_was_done,
    test_metrics_want_a_token_and_readiness_does_not,
)
from tests.clients.server.test_workspaces import (
    TOKENS,
    people,
    test_a_workspace_that_is_gone_is_not_made_anew,
    test_an_unknown_or_escaping_name_is_refused,
    test_each_user_works_in_a_clone_of_his_own,
)
from tests.harness.aegra import AegraServer, serving
from tests.harness.clone import make_repository
from tests.harness.conversation import SECONDS, until
from tests.harness.root import TEMPLATE
from tests.harness.server import Thread

pytestmark = pytest.mark.slow
UNTRANSLATABLE = "psycopg.errors.UntranslatableCharacter"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Each user's workspace is a clone of a repository."""
    source, folder = (
        tmp_path_factory.mktemp("source") / "app",
        mkdtemp(prefix=".team-", dir=TEMPLATE),
    )
    make_repository(source, **{"name.txt": "app"})
    (Path(folder) / "bob/private").mkdir(parents=True)
    tokens = (*TOKENS.items(), ("alice", ALICE), ("bob", BOB))
    yield {
        "WORKSPACES": folder,
        "WORKSPACES_FROM": str(source),
        "AUTH_TOKEN": ",".join(f"{name}:{token}" for name, token in tokens),
        "SANDBOX": "auto",
        "APPROVALS": "auto",
        "LOG_FORMAT": "json",
    }
    rmtree(folder)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, database: str, settings: dict[str, str]
) -> Iterator[AegraServer]:
    folder = tmp_path_factory.mktemp("clone")
    with serving(folder, database, workers=1, **settings) as server:
        yield server


@pytest.fixture
async def client(server: AegraServer) -> AsyncIterator[LangGraphClient]:
    async with server.get_client(TOKEN) as client:
        yield client


async def test_each_line_of_the_log_is_json_without_content(
    server: AegraServer, client: LangGraphClient
) -> None:
    """Nor have Aegra's own errors, and uvicorn's."""
    thread = await Thread.new(client)
    await thread.say(f"write .env: {SECRET}", mode="code")
    await thread.decide({"type": SECRET})
    assert SECRET in str(thread.error)
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get(f"/store/items?key={SECRET}")).status_code == 401
        http.headers["authorization"] = f"Bearer {TOKEN}"
        item = {"namespace": ["a"], "key": "k", "value": {SECRET: "\0"}}  # Postgres keeps no NUL
        assert (await http.put("/store/items", json=item)).status_code == 500
    await until(lambda: "Exception in ASGI application" in server.log.read_text())
    log = server.log.read_text()
    log = log[: log.rindex("\n")]  # the last line may not be whole yet
    lines = [json.loads(line) for line in log.splitlines()]
    errors = {line.get("error", "") for line in lines}
    assert {"modeshift.modes.errors.InvalidInputError", UNTRANSLATABLE} <= errors
    assert SECRET not in log


async def test_sigterm_lets_the_call_end_and_hands_the_rest_over(
    server: AegraServer, settings: dict[str, str]
) -> None:
    """The last test here: it ends the server."""
    folder = server.workspace / "alice/app"
    async with server.get_client(TOKEN) as client:
        thread = await Thread.new(client)
        given: Any = {"messages": [{"role": "user", "content": HELD}], "mode": "code"}
        await client.runs.create(thread.id, "agent", input=given)
        await until((folder / "began").exists)
        await server.stop(held_in=folder)
    assert (folder / "log").read_text() == "one\n"
    assert not (folder / "later.txt").exists()
    server.serve(workers=1, **settings)
    async with server.get_client(TOKEN) as client:
        thread = Thread(client, thread.id)
        await asyncio.wait_for(thread.run(input=None), SECONDS)
        assert (folder / "later.txt").read_text() == "x"
        assert (folder / "log").read_text() == "one\n"
