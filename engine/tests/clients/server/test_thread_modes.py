"""A thread's mode, limit and approvals over HTTP, on the real dev server."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.harness.conversation import APPROVE, until
from tests.harness.server import Thread, Web, running

KNOWN = "unknown mode 'kode'; the modes are: ask, architect, code, debug"
YOLO = "'yolo'; it is one of: manual, auto"
SETTLED = {"is_pending": False, "remembered": []}
PENDING = {**SETTLED, "is_pending": True}
FRESH = {"mode": "ask", "limit": None, "approvals": "manual", **SETTLED}
LIMITED = {"mode": "code", "limit": "ask", "approvals": "auto"}
REMEMBER = {**APPROVE, "remember": True}


async def remember(thread: Thread, web: Web, *names: str) -> None:
    """Always allow ``touch`` of each."""
    for name in names:
        await thread.say(f"run touch {name}", mode="code")
        await thread.decide(REMEMBER)
        web.file(name).unlink()


async def test_what_there_is(http: httpx.AsyncClient) -> None:
    modes = {mode["slug"]: mode for mode in (await http.get("/modes")).json()}
    anywhere = {"to": ["*"], "when": "", "asks": "a person"}
    assert modes["ask"]["ways"] == [anywhere | {"is_task": False}, anywhere | {"is_task": True}]
    assert modes["ask"]["by_hand"] is False
    assert list(modes) == ["ask", "architect", "code", "debug"]
    assert ["write_file" in modes[slug]["tools"] for slug in ("ask", "code")] == [False, True]
    assert modes["ask"]["is_default"]
    described = (await http.get("/openapi.json")).json()["paths"]
    assert described["/threads/{id}/mode"]["patch"]["summary"].startswith("Set a thread's mode")
    assert "/threads/{thread_id}/runs" in described, "beside the server's own"
    words = (await http.get("/modeshift/chart")).json()["approvals"]
    assert [(each["value"], each["name"], each["is_default"]) for each in words] == [
        ("manual", "Ask first", True),
        ("auto", "Auto-accept", False),
    ]
    assert words[1]["sentence"].startswith("Edits of files")


async def test_a_thread_begins_with_what_it_is_created_with(web: Web) -> None:
    given = {**LIMITED, "metadata": {"a": "b"}}
    created = (await web.http.post("/modeshift/threads", json=given)).json()
    assert (created["metadata"]["a"], created["limit"]) == ("b", "ask")
    thread = Thread(web.client, created["thread_id"])
    assert await web.get(thread) == LIMITED | PENDING
    await thread.say("write a: 1")
    assert thread.nodes == ["intake", "code", "act", "code"]
    assert "This thread is limited" in str(await thread.values())
    assert await web.get(thread) == LIMITED | SETTLED


SPELLINGS: dict[str, Callable[[UUID], str]] = {
    "no hyphens": lambda uuid: uuid.hex,
    "upper case": lambda uuid: str(uuid).upper(),
    "braces": lambda uuid: f"{{{uuid}}}",
    "urn": lambda uuid: uuid.urn,
    "other hyphens": lambda uuid: "-".join(uuid.hex),
}


@pytest.mark.parametrize("name", SPELLINGS)
async def test_a_thread_has_its_limit_however_its_id_is_spelled(web: Web, name: str) -> None:
    id, http = uuid4(), web.http
    spelled = SPELLINGS[name](id)
    made = await http.post("/modeshift/threads", json={**LIMITED, "thread_id": spelled})
    assert (made.json()["thread_id"], made.json()["limit"]) == (str(id), "ask"), made.text
    thread = Thread(web.client, str(id))
    assert await web.get(thread) == LIMITED | PENDING
    await thread.say("write spelled.txt: x")
    assert ((await thread.values())["limit"], web.file("spelled.txt").exists()) == ("ask", False)
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
    assert (await http.get(f"/threads/{id}/state")).json()["values"]["limit"] == "ask"


WRONG: list[tuple[Any, str]] = [
    ({"mode": "kode"}, KNOWN),
    ({"limit": "kode"}, KNOWN),
    ({"mode": None}, "unknown mode None"),
    ({"mode": "code", "approvals": "yolo"}, YOLO),
    ({"mood": "code"}, "unknown key 'mood' in the settings of a thread; the keys are: mode"),
    ({}, "give one of: mode, limit, approvals, forget"),
    ([], "the body is an object with: mode, limit, approvals, forget"),
]
WRONG_INPUTS = [
    *WRONG[:2],
    ({"approvals": "yolo"}, YOLO),
    ({"compact": "yes"}, "compact 'yes' does not fit: Input should be a valid boolean"),
    ({"mood": "code"}, "unknown key 'mood' in a run's input; the keys are: messages, mode"),
]


async def test_what_does_not_fit_is_refused_and_changes_nothing(web: Web) -> None:
    http, thread = web.http, await Thread.new(web.client)
    mode = f"/threads/{thread.id}/mode"
    answers = [(await http.patch(mode, json=given), text) for given, text in WRONG]
    for given, text in WRONG[:5]:
        answers.append((await http.post("/modeshift/threads", json=given), text))
    for given, text in WRONG_INPUTS:
        for way in ("", "/wait", "/stream"):
            run = {"assistant_id": "agent", "input": given}
            answers.append((await http.post(f"/threads/{thread.id}/runs{way}", json=run), text))
    as_json = {"content-type": "application/json"}
    answers.append((await http.patch(mode, content="{", headers=as_json), ""))
    for answer, text in answers:
        assert (answer.status_code, text in answer.text) == (422, True), answer.text
    assert (await web.get(thread, "runs"), await web.get(thread)) == ([], FRESH)
    unknown = f"/threads/{uuid4()}/mode"
    for method in ("GET", "PATCH", "PUT"):  # the last by the gate
        answer = await http.request(method, unknown, json={"mode": "code"})
        assert answer.status_code == 404, method


async def test_a_question_is_taken_back_that_is_another_one_by_it(web: Web) -> None:
    """And the thread's stream says so."""
    thread = await web.say("write taken.txt: 1", mode="code")
    shown = await web.patch(thread, approvals="manual", mode="code")
    assert (shown["is_pending"], len(await thread.waiting())) == (True, 1), "it is the same"
    stream = f"/threads/{thread.id}/stream?stream_modes=state_update"
    async with web.http.stream("GET", stream) as answer:
        lines = answer.aiter_lines()
        shown = await web.patch(thread, limit="ask")
        data = await anext(line async for line in lines if line.startswith("data: {"))
    state = json.loads(data.removeprefix("data: "))["state"]
    assert (state["interrupts"], state["values"]["limit"]) == ([], "ask")
    assert shown == {**LIMITED, "approvals": "manual", **SETTLED, "begun": []}
    assert not await thread.waiting()
    question = await web.get(thread, "question")
    assert (question["question"], question["is_cut_off"]) == (None, False)
    resume = {"command": {"resume": {"decisions": [APPROVE]}}, "assistant_id": "agent"}
    refused = await web.http.post(f"/threads/{thread.id}/runs/wait", json=resume)
    assert refused.status_code == 409, refused.text
    await thread.say("hello")
    assert not web.file("taken.txt").exists()
    assert (await thread.values())["limit"] == "ask"
    assert (await web.patch(thread, limit=None, mode="debug"))["limit"] is None
    assert await thread.mode() == "debug"


async def test_a_copy_has_what_is_set_and_what_waits(web: Web) -> None:
    thread = await web.say("hello")
    await web.patch(thread, limit="architect")
    await web.patch(thread, mode="code")
    copy = await web.copy(thread)
    await web.patch(copy, limit="ask")
    assert (await copy.values())["limit"] == "ask"
    assert (await copy.mode(), (await thread.values())["limit"]) == ("code", "architect")
    copy = await web.copy(await web.make(**LIMITED))
    assert await web.get(copy) == LIMITED | PENDING
    await copy.say("write copied.txt: x")
    assert (await copy.values())["limit"] == "ask"
    assert not web.file("copied.txt").exists()


async def test_approvals_leave_a_question_open_by_every_way(web: Web) -> None:
    auto: Any = {"approvals": "auto"}
    ways: list[Callable[[Thread], Any]] = [
        lambda thread: web.patch(thread, **auto),
        lambda thread: thread.run(input=auto),
        lambda thread: thread.run(command={"update": auto}),
        lambda thread: web.client.threads.update_state(thread.id, auto),
    ]
    for number, write in enumerate(ways):
        thread = await web.say(f"write open{number}.txt: x", mode="code")
        question = await web.get(thread, "question")
        await write(thread)
        assert question["question"]
        assert await web.get(thread, "question") == question
        assert (await web.get(thread))["approvals"] == "auto"
        await thread.decide(APPROVE)
        assert web.file(f"open{number}.txt").exists()
        await thread.say(f"write unasked{number}.txt: x")
        assert web.file(f"unasked{number}.txt").exists()


async def test_what_is_set_dies_with_its_thread(web: Web) -> None:
    for is_begun in (True, False):
        thread = await web.make(mode="code", approvals="auto")
        if is_begun:
            await thread.say("list")
            await web.patch(thread, approvals="auto")
        await web.client.threads.delete(thread.id)
        await web.client.threads.create(thread_id=thread.id)
        assert await web.get(thread) == FRESH
        await thread.say("write unasked.txt: x", mode="code")
        assert await thread.asked() == ["write_file"]
        assert not web.file("unasked.txt").exists()


async def test_it_holds_from_the_next_step_of_a_run(web: Web) -> None:
    """The command that has begun goes on, and the answer says so; the next one does not run."""
    text = "run touch begun; until [ -e go ]; do sleep 0.05; done & write after.txt: 1"
    thread = await web.say(text, mode="code")
    decisions = [APPROVE] * len(await thread.waiting())
    run = asyncio.create_task(thread.decide(*decisions))
    await until(web.file("begun").exists)
    shown = await web.patch(thread, mode="debug", limit="ask")
    assert (shown["mode"], shown["limit"], shown["is_pending"]) == ("debug", "ask", True)
    assert shown["begun"] == ["execute_command"]
    await web.patch(thread, mode="architect")
    web.file("go").touch()
    await run
    assert thread.nodes == ["review", "act", "intake", "architect"]
    values = await thread.values()
    assert (values["mode"], values["limit"]) == ("architect", "ask")
    assert values["mode_changes"][-1]["decided_by"] == "host"
    assert len(decisions) == 2
    assert not web.file("after.txt").exists()
    assert "the host has changed the mode" in str(values["messages"])
    assert not (await web.get(thread))["is_pending"]


async def test_a_question_at_a_ceiling_stays_open(tmp_path: Path) -> None:
    with running(tmp_path, MAX_TURN_COST="600 tokens") as server:
        (server.workspace / "a.txt").write_text("a")
        async with server.client as client, httpx.AsyncClient(base_url=server.url) as http:
            web = Web(server, client, http)
            thread = await web.say("read a.txt\nread a.txt")
            asked = await thread.waiting()
            assert await thread.asked() == ["go_on"]
            shown = await web.patch(thread, mode="architect")
            assert (shown["mode"], shown["is_pending"]) == ("architect", True)
            assert await thread.waiting() == asked
            await thread.decide(APPROVE)
            assert await thread.mode() == "architect"


async def test_no_client_reads_or_writes_what_the_host_sets_but_here(web: Web) -> None:
    thread, http = await Thread.new(web.client), web.http
    await web.patch(thread, mode="code")
    item = {"key": "mode", "value": {"value": "debug", "id": "1"}}
    for namespace, status in ((["modeshift", thread.id], 403), (["modeshift"], 403), (["a"], 204)):
        written = await http.put("/store/items", json={"namespace": namespace, **item})
        assert written.status_code == status, written.text
    where = {"namespace": f"modeshift.{thread.id}", "key": "mode"}
    assert (await http.get("/store/items", params=where)).status_code == 403
    body = {"namespace": ["modeshift", thread.id], "key": "mode"}
    assert (await http.request("DELETE", "/store/items", json=body)).status_code == 403
    assert (await web.get(thread))["mode"] == "code"


async def test_what_is_remembered_is_shown_and_taken_back(web: Web) -> None:
    """Also beside a question; what is no list of ids at all is refused in ``test_agent``."""
    thread = await Thread.new(web.client)
    await remember(thread, web, "one", "two")
    first, second = (await web.get(thread))["remembered"]
    shown = (first["mode"], first["tool"], first["pattern"])
    assert shown == ("code", "execute_command", "touch one")
    body = {"forget": [first["id"], "other"], "approvals": "auto"}
    answer = await web.http.patch(f"/threads/{thread.id}/mode", json=body)
    assert (answer.status_code, "remembers" in answer.text) == (422, True), answer.text
    assert (await web.get(thread))["remembered"] == [first, second]
    assert (await web.patch(thread, forget=[first["id"]]))["remembered"] == [second]
    assert (await thread.values())["remembered"] == [second], "at once"
    await thread.say("run touch two & run touch one")
    assert await thread.asked("command") == ["touch one"]
    assert (await web.patch(thread, forget=[second["id"]]))["remembered"] == []
    assert not await thread.waiting(), "it is another question by it"
    await thread.say("run touch two")
    assert await thread.asked("command") == ["touch two"]
    assert not web.file("one").exists() and not web.file("two").exists()


async def test_what_was_allowed_before_a_sub_task_is_taken_back_during_it(web: Web) -> None:
    """Also where its run was stopped and goes on, so that nobody begins a turn."""
    thread = await Thread.new(web.client)
    await remember(thread, web, "one")
    command = "touch in-task; until [ -e task-may-end ]; do sleep 0.05; done"
    await thread.say(f"task in code: run {command}\nrun touch one")
    await thread.decide(APPROVE)
    run = asyncio.create_task(thread.decide(APPROVE))
    await until(web.file("in-task").exists)
    (running,) = await web.client.runs.list(thread.id, status="running")
    await web.client.runs.cancel(thread.id, running["run_id"], wait=True)
    await run
    web.file("task-may-end").touch()
    (kept,) = (await web.get(thread))["remembered"]
    assert (await web.patch(thread, forget=[kept["id"]]))["remembered"] == []
    await thread.run(input=None)
    assert await thread.asked("command") == ["touch one"]
    assert not web.file("one").exists()
