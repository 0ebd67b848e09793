"""A thread's mode, limit and approvals over HTTP, on the real dev server."""

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.harness.conversation import APPROVE, until
from tests.harness.server import Server, Thread

KNOWN = "unknown mode 'kode'; the modes are: ask, architect, code, debug"

PENDING = {"is_pending": True, "remembered": []}
SETTLED = {"is_pending": False, "remembered": []}


async def patch(http: httpx.AsyncClient, thread: Thread, **given: Any) -> dict[str, Any]:
    answer = await http.patch(f"/threads/{thread.id}/mode", json=given)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_what_there_is(http: httpx.AsyncClient) -> None:
    modes = {mode["slug"]: mode for mode in (await http.get("/modes")).json()}
    anywhere = {"to": ["*"], "when": "", "asks": "a person"}
    assert modes["ask"]["ways"] == [anywhere | {"is_task": False}, anywhere | {"is_task": True}]
    assert modes["ask"]["by_hand"] is False
    assert list(modes) == ["ask", "architect", "code", "debug"]
    assert "write_file" in modes["code"]["tools"]
    assert "write_file" not in modes["ask"]["tools"]
    assert modes["ask"]["is_default"]
    described = (await http.get("/openapi.json")).json()["paths"]
    assert described["/threads/{id}/mode"]["patch"]["summary"].startswith("Set a thread's mode")
    assert "/threads/{thread_id}/runs" in described, "beside the server's own"


async def test_a_thread_begins_with_what_it_is_created_with(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    given = {"mode": "code", "limit": "ask", "approvals": "auto", "metadata": {"a": "b"}}
    created = (await http.post("/modeshift/threads", json=given)).json()
    assert (created["metadata"]["a"], created["limit"]) == ("b", "ask")
    thread = Thread(client, created["thread_id"])
    shown = (await http.get(f"/threads/{thread.id}/mode")).json()
    assert shown == {
        "mode": "code",
        "limit": "ask",
        "approvals": "auto",
        "is_pending": True,
        "remembered": [],
    }
    await thread.say("write a: 1")
    assert thread.nodes == ["intake", "code", "act", "code"]
    assert "This thread is limited" in str(await thread.values())
    shown = (await http.get(f"/threads/{thread.id}/mode")).json()
    assert shown == {
        "mode": "code",
        "limit": "ask",
        "approvals": "auto",
        "is_pending": False,
        "remembered": [],
    }


SPELLINGS: dict[str, Callable[[UUID], str]] = {
    "no hyphens": lambda uuid: uuid.hex,
    "upper case": lambda uuid: str(uuid).upper(),
    "braces": lambda uuid: f"{{{uuid}}}",
    "urn": lambda uuid: uuid.urn,
    "other hyphens": lambda uuid: "-".join(uuid.hex),
}


@pytest.mark.parametrize("name", SPELLINGS)
async def test_a_thread_has_its_limit_however_its_id_is_spelled(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient, name: str
) -> None:
    id, file = uuid4(), server.workspace / "spelled.txt"
    spelled, given = SPELLINGS[name](id), {"mode": "code", "limit": "ask", "approvals": "auto"}
    made = await http.post("/modeshift/threads", json={**given, "thread_id": spelled})
    assert (made.json()["thread_id"], made.json()["limit"]) == (str(id), "ask"), made.text
    shown = (await http.get(f"/threads/{id}/mode")).json()
    assert shown == {**given} | PENDING
    thread = Thread(client, str(id))
    await thread.say("write spelled.txt: x")
    assert ((await thread.values())["limit"], file.exists()) == ("ask", False)
    assert (await http.get(f"/modes?thread={spelled}")).status_code == 200
    assert (await http.get(f"/threads/{spelled}/mode")).status_code == 404, "by the gate"
    plain = SPELLINGS[name](uuid4())
    made = await http.post("/threads", json={"thread_id": plain})
    reached = await http.get(f"/threads/{made.json()['thread_id']}/mode")
    assert (UUID(made.json()["thread_id"]), reached.status_code) == (UUID(plain), 200)


@pytest.mark.parametrize("door", ["/threads", "/modeshift/threads"])
async def test_an_id_that_is_no_uuid_makes_no_thread(http: httpx.AsyncClient, door: str) -> None:
    before = len((await http.post("/threads/search", json={"limit": 1000})).json())
    for id in ("mine", "", "0", 5, [str(uuid4())], {"a": 1}, f"{uuid4()}x", "../" + uuid4().hex):
        answer = await http.post(door, json={"thread_id": id, "metadata": {}})
        assert (answer.status_code, "thread's id" in answer.text) == (422, True), answer.text
    assert len((await http.post("/threads/search", json={"limit": 1000})).json()) == before
    assert (await http.get("/modes?thread=mine")).status_code == 422
    made = await http.post(door, json={"thread_id": None})
    assert (await http.get(f"/threads/{made.json()['thread_id']}/mode")).status_code == 200


async def test_what_a_thread_is_made_with_is_in_the_thread(http: httpx.AsyncClient) -> None:
    id = uuid4()
    values = {"mode": "code", "limit": "ask", "phase": "idle", "approvals": "manual"}
    steps = [{"updates": [{"values": values, "as_node": "intake"}]}]
    made = await http.post("/threads", json={"thread_id": id.hex, "supersteps": steps})
    assert made.status_code == 200, made.text
    state = (await http.get(f"/threads/{id}/state")).json()
    assert state["values"]["limit"] == "ask"


async def test_what_does_not_fit_is_refused_and_changes_nothing(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    wrong: list[tuple[Any, str]] = [
        ({"mode": "kode"}, KNOWN),
        ({"limit": "kode"}, KNOWN),
        ({"mode": None}, "unknown mode None"),
        ({"mode": "code", "approvals": "yolo"}, "'yolo'; it is one of: manual, auto"),
        ({"mood": "code"}, "unknown key 'mood' in the settings of a thread; the keys are: mode"),
        ({}, "give one of: mode, limit, approvals, forget"),
        ([], "the body is an object with: mode, limit, approvals, forget"),
    ]
    for given, text in wrong:
        answer = await http.patch(f"/threads/{thread.id}/mode", json=given)
        assert (answer.status_code, text in answer.text) == (422, True), answer.text
        if given and "mood" not in given and isinstance(given, dict):
            answer = await http.post("/modeshift/threads", json=given)
            assert (answer.status_code, text in answer.text) == (422, True), answer.text
    for given, text in [
        ({"mode": "kode"}, KNOWN),
        ({"limit": "kode"}, KNOWN),
        ({"approvals": "yolo"}, "'yolo'; it is one of: manual, auto"),
        ({"mood": "code"}, "unknown key 'mood' in a run's input; the keys are: messages, mode"),
    ]:
        for way in ("", "/wait", "/stream"):
            run = {"assistant_id": "agent", "input": given}
            answer = await http.post(f"/threads/{thread.id}/runs{way}", json=run)
            assert (answer.status_code, text in answer.text) == (422, True), answer.text
    assert (await http.get(f"/threads/{thread.id}/runs")).json() == []
    broken = await http.patch(
        f"/threads/{thread.id}/mode", content="{", headers={"content-type": "application/json"}
    )
    assert broken.status_code == 422
    shown = (await http.get(f"/threads/{thread.id}/mode")).json()
    assert shown == {
        "mode": "ask",
        "limit": None,
        "approvals": "manual",
        "is_pending": False,
        "remembered": [],
    }
    unknown = f"/threads/{uuid4()}/mode"
    assert (await http.get(unknown)).status_code == 404
    assert (await http.patch(unknown, json={"mode": "code"})).status_code == 404
    assert (await http.put(unknown, json={"mode": "code"})).status_code == 404, "by the gate"


async def test_a_question_is_taken_back_that_is_another_one_by_it(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    """And the thread's stream says so."""
    thread = await Thread.new(client)
    await thread.say("write taken.txt: 1", mode="code")
    shown = await patch(http, thread, approvals="manual", mode="code")
    assert (shown["is_pending"], len(await thread.waiting())) == (True, 1), "it is the same"
    states = list[Any]()
    stream = f"/threads/{thread.id}/stream?stream_modes=state_update"
    async with http.stream("GET", stream) as answer:
        lines = answer.aiter_lines()
        shown = await patch(http, thread, limit="ask")
        async for line in lines:
            if line.startswith("data: {"):
                states.append(json.loads(line.removeprefix("data: "))["state"])
                break
    assert (states[0]["interrupts"], states[0]["values"]["limit"]) == ([], "ask")
    assert shown == {
        "mode": "code",
        "limit": "ask",
        "approvals": "manual",
        "is_pending": False,
        "remembered": [],
        "begun": [],
    }
    assert not await thread.waiting()
    question = (await http.get(f"/threads/{thread.id}/question")).json()
    assert (question["question"], question["is_cut_off"]) == (None, False)
    resume = {"command": {"resume": {"decisions": [APPROVE]}}, "assistant_id": "agent"}
    answer = await http.post(f"/threads/{thread.id}/runs/wait", json=resume)
    assert answer.status_code == 409, answer.text
    await thread.say("hello")
    assert not (server.workspace / "taken.txt").exists()
    assert (await thread.values())["limit"] == "ask"
    assert (await patch(http, thread, limit=None, mode="debug"))["limit"] is None
    assert await thread.mode() == "debug"


async def test_a_copy_of_a_thread_has_what_is_set_in_it(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say("hello")
    await patch(http, thread, limit="architect")
    await patch(http, thread, mode="code")
    copied = await http.post(f"/threads/{thread.id}/copy", json={})
    copy = Thread(client, copied.json()["thread_id"])
    await patch(http, copy, limit="ask")
    assert (await copy.values())["limit"] == "ask"
    assert (await copy.mode(), (await thread.values())["limit"]) == ("code", "architect")


async def test_approvals_leave_a_question_open_by_every_way(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    given: Any = {"approvals": "auto"}

    async def update(thread: Thread) -> None:
        await client.threads.update_state(thread.id, given)

    for number, write in enumerate(
        (
            lambda thread: patch(http, thread, **given),
            lambda thread: thread.run(input=given),
            lambda thread: thread.run(command={"update": given}),
            update,
        )
    ):
        thread = await Thread.new(client)
        await thread.say(f"write open{number}.txt: x", mode="code")
        question = (await http.get(f"/threads/{thread.id}/question")).json()
        await write(thread)
        assert question["question"]
        assert (await http.get(f"/threads/{thread.id}/question")).json() == question
        assert (await http.get(f"/threads/{thread.id}/mode")).json()["approvals"] == "auto"
        await thread.decide(APPROVE)
        assert (server.workspace / f"open{number}.txt").exists()
        await thread.say(f"write unasked{number}.txt: x")
        assert (server.workspace / f"unasked{number}.txt").exists()


async def test_what_is_set_dies_with_its_thread(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    for is_begun in (True, False):
        given = {"mode": "code", "approvals": "auto"}
        created = (await http.post("/modeshift/threads", json=given)).json()
        thread = Thread(client, created["thread_id"])
        if is_begun:
            await thread.say("list")
            await patch(http, thread, approvals="auto")
        await client.threads.delete(thread.id)
        await client.threads.create(thread_id=thread.id)
        shown = (await http.get(f"/threads/{thread.id}/mode")).json()
        assert shown == {
            "mode": "ask",
            "limit": None,
            "approvals": "manual",
            "is_pending": False,
            "remembered": [],
        }
        await thread.say("write unasked.txt: x", mode="code")
        assert [each["name"] for each in await thread.waiting()] == ["write_file"]
        assert not (server.workspace / "unasked.txt").exists()


async def test_a_copy_has_a_limit_that_waits(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    given = {"limit": "ask", "mode": "code", "approvals": "auto"}
    created = (await http.post("/modeshift/threads", json=given)).json()
    copied = await http.post(f"/threads/{created['thread_id']}/copy", json={})
    copy = Thread(client, copied.json()["thread_id"])
    shown = (await http.get(f"/threads/{copy.id}/mode")).json()
    assert shown == {**given} | PENDING
    await copy.say("write copied.txt: x")
    assert (await copy.values())["limit"] == "ask"
    assert not (server.workspace / "copied.txt").exists()


async def test_it_holds_from_the_next_step_of_a_run(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    """The command that has begun goes on, and the answer says so; the next one does not run."""
    thread = await Thread.new(client)
    text = "run touch begun; until [ -e go ]; do sleep 0.05; done & write after.txt: 1"
    await thread.say(text, mode="code")
    decisions = [APPROVE] * len(await thread.waiting())
    run = asyncio.create_task(thread.decide(*decisions))
    await until((server.workspace / "begun").exists)
    shown = await patch(http, thread, mode="debug", limit="ask")
    assert (shown["mode"], shown["limit"], shown["is_pending"]) == ("debug", "ask", True)
    assert shown["begun"] == ["execute_command"]
    await patch(http, thread, mode="architect")
    (server.workspace / "go").touch()
    await run
    assert thread.nodes == ["review", "act", "intake", "architect"]
    values = await thread.values()
    assert (values["mode"], values["limit"]) == ("architect", "ask")
    assert values["mode_changes"][-1]["decided_by"] == "host"
    assert len(decisions) == 2
    assert not (server.workspace / "after.txt").exists()
    assert "the host has changed the mode" in str(values["messages"])
    assert not (await http.get(f"/threads/{thread.id}/mode")).json()["is_pending"]


async def test_a_question_at_a_ceiling_stays_open(tmp_path: Path) -> None:
    server = Server(tmp_path)
    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start("modeshift", "dev", "--port", str(server.port), MAX_TURN_COST="600 tokens")
        (server.workspace / "a.txt").write_text("a")
        async with server.get_client() as client, httpx.AsyncClient(base_url=server.url) as http:
            thread = await Thread.new(client)
            await thread.say("read a.txt\nread a.txt")
            (asked,) = await thread.waiting()
            assert asked["name"] == "go_on"
            shown = await patch(http, thread, mode="architect")
            assert (shown["mode"], shown["is_pending"]) == ("architect", True)
            assert await thread.waiting() == [asked]
            await thread.decide(APPROVE)
            assert await thread.mode() == "architect"


async def test_no_client_reads_or_writes_what_the_host_sets_but_here(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await patch(http, thread, mode="code")
    item = {"key": "mode", "value": {"value": "debug", "id": "1"}}
    for namespace, status in ((["modeshift", thread.id], 403), (["modeshift"], 403), (["a"], 204)):
        written = await http.put("/store/items", json={"namespace": namespace, **item})
        assert written.status_code == status, written.text
    where = {"namespace": f"modeshift.{thread.id}", "key": "mode"}
    assert (await http.get("/store/items", params=where)).status_code == 403
    body = {"namespace": ["modeshift", thread.id], "key": "mode"}
    assert (await http.request("DELETE", "/store/items", json=body)).status_code == 403
    assert (await http.get(f"/threads/{thread.id}/mode")).json()["mode"] == "code"


async def test_what_is_remembered_is_shown_and_taken_back(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    """Also beside a question; what the body has beside ids that are shown changes nothing."""
    thread = await Thread.new(client)
    for name in ("one", "two"):
        await thread.say(f"run touch {name}", mode="code")
        await thread.decide({**APPROVE, "remember": True})
        (server.workspace / name).unlink()
    path = f"/threads/{thread.id}/mode"
    first, second = (await http.get(path)).json()["remembered"]
    assert (first["mode"], first["tool"], first["pattern"]) == (
        "code", "execute_command", "touch one",
    )  # fmt: skip
    before = await thread.values()
    wrong: list[Any] = [
        5, None, [5], {"id": first["id"]}, [first], ["touch one"], [first["id"], "other"], "other",
    ]  # fmt: skip
    for given in wrong:
        for more in ({}, {"approvals": "auto"}):
            answer = await http.patch(path, json={"forget": given, **more})
            assert (answer.status_code, "forget" in answer.text or "remembers" in answer.text) == (
                422, True,
            ), answer.text  # fmt: skip
    assert await thread.values() == before
    assert (await patch(http, thread, forget=[first["id"]]))["remembered"] == [second]
    assert (await thread.values())["remembered"] == [second], "at once"
    await thread.say("run touch two & run touch one")
    assert [each["args"]["command"] for each in await thread.waiting()] == ["touch one"]
    shown = await patch(http, thread, forget=[second["id"]])
    assert shown["remembered"] == []
    assert not await thread.waiting(), "it is another question by it"
    await thread.say("run touch two")
    assert [each["args"]["command"] for each in await thread.waiting()] == ["touch two"]
    assert not [name for name in ("one", "two") if (server.workspace / name).exists()]


async def test_the_chart_has_the_words_for_approvals(http: httpx.AsyncClient) -> None:
    words = (await http.get("/modeshift/chart")).json()["approvals"]
    assert [(each["value"], each["name"], each["is_default"]) for each in words] == [
        ("manual", "Ask first", True),
        ("auto", "Auto-accept", False),
    ]
    assert words[1]["sentence"].startswith("Edits of files")


@pytest.mark.parametrize("is_all", [True, False])
async def test_what_was_allowed_before_a_sub_task_is_taken_back_during_it(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient, is_all: bool
) -> None:
    """Also where its run was stopped and goes on, so that nobody begins a turn."""
    thread, path = await Thread.new(client), "/threads/{}/mode"
    await thread.say("run touch one", mode="code")
    await thread.decide({**APPROVE, "remember": True})
    (server.workspace / "one").unlink()
    command = f"touch begun-{is_all}; until [ -e go-{is_all} ]; do sleep 0.05; done"
    await thread.say(f"task in code: run {command}\nrun touch one")
    await thread.decide(APPROVE)
    run = asyncio.create_task(thread.decide(APPROVE))
    await until((server.workspace / f"begun-{is_all}").exists)
    (running,) = await client.runs.list(thread.id, status="running")
    await client.runs.cancel(thread.id, running["run_id"], wait=True)
    await run
    (server.workspace / f"go-{is_all}").touch()
    shown = (await http.get(path.format(thread.id))).json()
    (kept,) = shown["remembered"]
    forget = ["all"] if is_all else [kept["id"]]
    assert (await patch(http, thread, forget=forget))["remembered"] == []
    await thread.run(input=None)
    assert [each["args"]["command"] for each in await thread.waiting()] == ["touch one"]
    assert not (server.workspace / "one").exists()


async def test_a_fork_has_nothing_that_was_taken_back_since(
    server: Server, http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    for name in ("one", "two"):
        await thread.say(f"run touch {name}", mode="code")
        await thread.decide({**APPROVE, "remember": True})
        (server.workspace / name).unlink()
    before: Any = await client.threads.get_state(thread.id)
    for each in (await http.get(f"/threads/{thread.id}/mode")).json()["remembered"]:
        await patch(http, thread, forget=[each["id"]])
        await thread.say("hello")
    await thread.run(
        input={"messages": [{"role": "user", "content": "run touch one"}]},
        checkpoint_id=before["checkpoint"]["checkpoint_id"],
    )
    assert [each["args"]["command"] for each in await thread.waiting()] == ["touch one"]
    assert not (server.workspace / "one").exists()
