"""A workspace for each user of the real server: who has which, and what keeps them apart."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.harness.clone import git, make_repository
from tests.harness.root import TEMPLATE
from tests.harness.server import Server, Thread
from tests.tools.sandbox.commands import needs_sandbox

TOKENS = {"alice": "alice-0123456789abc", "bob": "bob-0123456789abcdef"}
SOURCES = ("app", "docs", "shared")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each user's workspace is a clone of a repository."""
    server = Server(tmp_path_factory.mktemp("clone"))
    # A command has a /tmp of its own, and would see nothing there in any case.
    server.workspace = Path(mkdtemp(prefix=".workspaces-", dir=TEMPLATE))
    for name in ("app", "docs"):
        make_repository(server.folder / name, **{"name.txt": name})
    # It borrows the objects of another one.
    assert git(server.folder, "clone", "-q", "--shared", "app", "shared").returncode == 0
    (server.workspace / "bob/private").mkdir(parents=True)
    (server.workspace / "bob/private/note.txt").write_text("bob's own")
    server.start(
        WORKSPACES=str(server.workspace),
        WORKSPACES_FROM=",".join(str(server.folder / name) for name in (*SOURCES, "broken")),
        AUTH_TOKEN=",".join(f"{name}:{token}" for name, token in TOKENS.items()),
        SANDBOX="auto",
        APPROVALS="auto",
    )
    yield server
    server.kill()
    rmtree(server.workspace)


def ask(server: Server, user: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {TOKENS[user]}"}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=120)


async def make(server: Server, user: str, **body: Any) -> httpx.Response:
    async with ask(server, user) as http:
        return await http.post("/modeshift/threads", json=body)


People = dict[str, LangGraphClient]


@pytest.fixture
async def people(server: Server) -> AsyncIterator[People]:
    clients = {name: server.get_client(token) for name, token in TOKENS.items()}
    async with clients["alice"], clients["bob"]:
        yield clients


async def test_each_user_works_in_a_clone_of_his_own(server: Server, people: People) -> None:
    for user in TOKENS:
        made = await make(server, user)
        assert made.json()["workspace"] == f"{user}/app"
        thread = Thread(people[user], made.json()["thread_id"])
        await thread.say(f"write mine.txt: {user}", mode="code")
        values = await thread.values()
        assert values["workspace"] == f"{user}/app"
        folder = server.workspace / user / "app"
        assert (folder / "mine.txt").read_text() == user
        assert (folder / "name.txt").read_text() == "app"
        assert (folder / ".git").is_dir()


async def test_a_thread_that_was_made_in_another_way_has_its_users_own(
    server: Server, people: People
) -> None:
    thread = await Thread.new(people["alice"])
    await thread.say("read name.txt")
    assert (await thread.values())["workspace"] == "alice/app"
    copied: Any = await thread.client.http.post(f"/threads/{thread.id}/copy", json=None)
    copy = Thread(people["alice"], copied["thread_id"])
    await copy.say("read name.txt")
    assert (await copy.values())["workspace"] == "alice/app"


async def test_another_repository_and_an_existing_folder_can_be_chosen(
    server: Server, people: People
) -> None:
    made = await make(server, "bob", workspace=str(server.folder / "docs"))
    assert made.json()["workspace"] == "bob/docs"
    thread = Thread(people["bob"], made.json()["thread_id"])
    await thread.say("read name.txt")
    assert "docs" in str((await thread.values())["messages"][-1])
    made = await make(server, "bob", workspace="private")
    assert made.json()["workspace"] == "bob/private"


@pytest.mark.parametrize("name", SOURCES)
async def test_a_clone_shares_no_file_with_its_source(server: Server, name: str) -> None:
    made = await make(server, "bob", workspace=str(server.folder / name))
    folder = server.workspace / made.json()["workspace"] / ".git"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if path.stat().st_nlink > 1] == []
    assert not (folder / "objects/info/alternates").exists()
    assert git(folder.parent, "fsck", "--full").returncode == 0


async def test_a_refused_creation_leaves_no_clone_behind(server: Server, people: People) -> None:
    docs = str(server.folder / "docs")
    id = (await people["alice"].threads.create())["thread_id"]
    assert (await make(server, "alice", thread_id=id, workspace=docs)).status_code == 409
    assert (await make(server, "alice", metadata=5, workspace=docs)).status_code == 422
    await Thread(people["alice"], id).say("hello")
    again = await make(server, "alice", thread_id=id, workspace=docs, if_exists="do_nothing")
    assert again.status_code == 422
    assert not (server.workspace / "alice/docs").exists()
    assert not list((server.workspace / "alice").glob(".*"))


async def test_a_clone_that_fails_leaves_no_thread_behind(server: Server) -> None:
    id, broken = str(uuid4()), server.folder / "broken"
    answer = await make(server, "alice", thread_id=id, workspace=str(broken))
    assert answer.status_code == 422
    assert "broken cannot be cloned: " in answer.json()["detail"]
    git(server.folder, "clone", "-q", "app", "broken")
    made = await make(server, "alice", thread_id=id, workspace=str(broken))
    assert made.json()["workspace"] == "alice/broken"
    broken.rename(server.folder / "gone")


@pytest.mark.parametrize(
    "name",
    ["nowhere", "../bob/private", "/etc", "..", ".", "", "private", "link", ["app"], {"a": 1}, 5],
)
async def test_an_unknown_or_escaping_name_is_refused(server: Server, name: Any) -> None:
    """``private`` is another user's; ``link`` leads there."""
    link = server.workspace / "alice/link"
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(server.workspace / "bob/private")
    answer = await make(server, "alice", workspace=name)
    assert answer.status_code == 422, answer.text
    assert repr(name) in answer.json()["detail"]
    assert "private" not in answer.json()["detail"].replace(repr(name), "")


async def test_an_id_that_is_no_threads_makes_no_folder(server: Server) -> None:
    answer = await make(server, "alice", thread_id="../../evil")
    assert answer.status_code == 422
    assert not (server.folder / "evil").exists()


async def test_a_workspace_stays_whatever_is_sent(server: Server, people: People) -> None:
    made = await make(server, "bob", workspace="private")
    id = made.json()["thread_id"]
    again = await make(
        server, "bob", workspace=str(server.folder / "app"), thread_id=id, if_exists="do_nothing"
    )
    assert again.status_code == 422
    assert "'bob/private'" in again.json()["detail"]
    said = {"messages": [{"role": "user", "content": "hello"}]}
    async with ask(server, "bob") as http:
        run = {"assistant_id": "agent", "input": {**said, "workspace": "bob/app"}}
        assert (await http.post(f"/threads/{id}/runs/wait", json=run)).status_code == 422
        thread = Thread(people["bob"], id)
        await thread.say("read note.txt")
        update = {"values": {"workspace": "bob/app"}}
        assert (await http.post(f"/threads/{id}/state", json=update)).status_code == 422
        run = {"assistant_id": "agent", "command": {"update": {"workspace": "bob/app"}}}
        assert (await http.post(f"/threads/{id}/runs/wait", json=run)).status_code == 422
        configured = {"thread_id": id, "langgraph_auth_user_id": "alice"}
        run = {"assistant_id": "agent", "input": said, "config": {"configurable": configured}}
        await http.post(f"/threads/{id}/runs/wait", json=run)
    assert (await thread.values())["workspace"] == "bob/private"


async def test_who_may_not_use_a_thread_gives_it_no_workspace(
    server: Server, people: People
) -> None:
    """Its first run says where it works; another user's is refused after it was looked at."""
    id = (await people["bob"].threads.create(thread_id=str(uuid4())))["thread_id"]
    said = {"messages": [{"role": "user", "content": "hello"}]}
    async with ask(server, "alice") as http:
        run = {"assistant_id": "agent", "input": said}
        assert (await http.post(f"/threads/{id}/runs/wait", json=run)).status_code == 404
        for path in ("mode", "question", "files"):
            assert (await http.get(f"/threads/{id}/{path}")).status_code == 404
        assert (await http.patch(f"/threads/{id}/mode", json={"mode": "ask"})).status_code == 404
    thread = Thread(people["bob"], id)
    await thread.say("hello")
    assert (await thread.values())["workspace"] == "bob/app"


async def test_a_workspace_that_is_gone_is_not_made_anew(server: Server, people: People) -> None:
    (server.workspace / "bob/short").mkdir(exist_ok=True)
    made = await make(server, "bob", workspace="short")
    thread = Thread(people["bob"], made.json()["thread_id"])
    await thread.say("hello")
    (server.workspace / "bob/short").rmdir()
    await thread.say("hello again")
    assert thread.error is not None
    assert "'bob/short' of this thread is not on this machine" in thread.error["message"]
    assert not (server.workspace / "bob/short").exists()


@needs_sandbox
async def test_a_command_sees_no_other_workspace(server: Server, people: People) -> None:
    thread = Thread(people["alice"], (await make(server, "alice")).json()["thread_id"])
    await thread.say(f"run ls {server.workspace}; cat {server.workspace}/bob/*/*", mode="code")
    result = str([each for each in (await thread.values())["messages"] if each["type"] == "tool"])
    assert "alice" in result
    assert "bob's own" not in result
    assert "No such file" in result
