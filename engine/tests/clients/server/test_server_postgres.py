"""The dev server on Postgres, and what is read and removed beside it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.commands.conftest import Run, run
from tests.harness import prefork
from tests.harness.conversation import APPROVE
from tests.harness.place import UserFolders
from tests.harness.postgres import Postgres
from tests.harness.server import Server, Thread

__all__ = ["run"]


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.make_database()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    if server.process is not None:
        server.kill()


async def patch(server: Server, thread: Thread, **given: str) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        answer = await http.patch(f"/threads/{thread.id}/mode", json=given)
        assert answer.status_code == 200, answer.text


async def test_a_conversation_outlives_the_server_and_is_removed(server: Server, url: str) -> None:
    server.start(DATABASE_URL=url)
    assert "threads    Postgres at 127.0.0.1/t" in server.log.read_text()
    async with server.client as client:
        thread = await Thread.new(client)
        await thread.say("write a.txt: x", mode="code", approvals="manual")
        copied: Any = await client.http.post(f"/threads/{thread.id}/copy", json=None)
        copy = copied["thread_id"]
        await patch(server, thread, approvals="auto")
    server.kill()
    (server.folder / ".langgraph_api").rename(server.folder / "lists that are lost")
    server.start(DATABASE_URL=url)
    async with server.client as client:
        thread.client = client
        listed = await client.threads.search(ids=[thread.id])
        assert [each["status"] for each in listed] == ["interrupted"]
        assert [each["name"] for each in await thread.waiting()] == ["write_file"]
        await thread.decide(APPROVE)
        values = await thread.values()
        assert values["approvals"] == "auto", "set before the restart, taken in after it"
        assert (server.workspace / "a.txt").read_text() == "x"
        assert not (server.folder / "checkpoints.sqlite").exists()
        usage = json.loads(_run(server, url, "usage", "--json"))
        counts = {each["id"]: each["taken"]["offline"]["answers"] for each in usage["threads"]}
        assert counts == {thread.id: 2, copy: 1}
        await client.threads.delete(thread.id)
    assert thread.id not in _run(server, url, "usage")
    assert "is in use; stop the servers" in _run(server, url, "clean-data", fails=True)
    server.kill()
    removed = ""
    while "nothing to remove" not in removed:  # Postgres needs a moment to see that it is gone
        command = prefork.run("modeshift", "clean-data", env=server.environment(DATABASE_URL=url))
        removed += command.stdout
    assert "removed the table checkpoint_blobs" in removed


def _run(server: Server, url: str, *command: str, fails: bool = False) -> str:
    done = prefork.run("modeshift", *command, env=server.environment(DATABASE_URL=url))
    assert bool(done.returncode) == fails, done.stderr
    return done.stderr if fails else done.stdout


WRONG = {
    "postgresql://me:secretword@127.0.0.1:1/x": "cannot be used now: connection failed",
    "mysql://me:secretword@127.0.0.1/x": "DATABASE_URL begins with 'mysql'; give postgresql://",
    "postgresql://me:secretword@[x/": "DATABASE_URL is no address of a database; give postgresql",
    "postgresql://me:secretword@127.0.0.1/x?foo=1": "DATABASE_URL is no address of a database",
    "postgresql://me:secretword@127.0.0.1:port/x": "DATABASE_URL is no address of a database",
    "postgresql://me:pass@secretword@127.0.0.1:1/x": "with %40 for an @ and %2F for a / in the",
    "postgresql://me:1/secretword@127.0.0.1:1/x": "with %40 for an @ and %2F for a / in the",
    "postgresql://me:secretword": "DATABASE_URL is no address of a database",
}


def test_a_wrong_address_is_one_clear_sentence_without_the_password(
    place: UserFolders, run: Run
) -> None:
    first, *_ = WRONG
    env = place.environment(DATABASE_URL=first)
    for url, told in (
        *((url, run("usage", DATABASE_URL=url).stderr) for url in WRONG),
        *(
            (first, prefork.run("modeshift", name, env=env).stderr)
            for name in ("dev", "clean-data")
        ),
    ):
        assert WRONG[url] in told
        assert "secretword" not in told
        assert "Traceback" not in told
