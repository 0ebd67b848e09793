"""Several processes of Aegra on one Postgres: one run at a time, whichever has it."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from httpx import HTTPStatusError
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from tests.harness.aegra import PYTHON, AegraServer, serving
from tests.harness.conversation import APPROVE, SECONDS, until
from tests.harness.postgres import Postgres, find_postgres, run_postgres
from tests.harness.root import ENGINE
from tests.harness.server import Thread, Web

pytestmark = pytest.mark.slow
DOUBLES = 4
LONGEST = """
    SELECT coalesce(max(until) - extract(epoch FROM clock_timestamp()), 0) FROM (
        SELECT expires FROM thread_claims
        UNION ALL SELECT lease FROM effects WHERE state = 'started'
    ) AS ends (until)
"""
"""How many seconds a claim or a call's lease has left."""
WAITING = "SELECT 1 FROM pg_locks WHERE relation = 'holders'::regclass AND NOT granted"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, server: AegraServer) -> Iterator[AegraServer]:
    """A third process, on a port of its own, in the same workspace."""
    place = {"WORKSPACE": server.workspace, "CHECKPOINTS": server.folder / "checkpoints.sqlite"}
    settings = {name: str(path) for name, path in place.items()}
    with serving(tmp_path_factory.mktemp("other"), server.database, workers=1, **settings) as other:
        yield other


@pytest.fixture
async def elsewhere(other: AegraServer) -> AsyncIterator[LangGraphClient]:
    async with other.client as client:
        yield client


async def answer(client: LangGraphClient, thread: str, question: str) -> str:
    resume: Any = {"decisions": [APPROVE], "question": question}
    try:
        await client.runs.wait(thread, "agent", command={"resume": resume})
    except (APIStatusError, HTTPStatusError) as error:
        return str(error.response.status_code)
    except Exception as error:  # noqa: BLE001  # what a run failed of
        return str(error)
    return "taken"


async def test_of_two_answers_in_two_processes_one_is_taken(
    web: Web, elsewhere: LangGraphClient
) -> None:
    for number in range(DOUBLES):
        thread = await web.say(f"run echo once >> double{number}.log", mode="code")
        question = await Thread(elsewhere, thread.id).question()
        outcomes = await asyncio.gather(
            *(answer(each, thread.id, question) for each in (web.client, elsewhere))
        )
        assert web.file(f"double{number}.log").read_text() == "once\n"
        assert outcomes.count("taken") == 1, outcomes
        types = [message["type"] for message in (await thread.values())["messages"]]
        assert types.count("tool") == 1


async def test_a_run_is_seen_and_cancelled_from_another_process(
    server: AegraServer, web: Web, elsewhere: LangGraphClient
) -> None:
    """While it goes on nothing else may write into the thread or delete it."""
    client, thread = web.client, await Thread.new(elsewhere)
    await thread.say("run touch begun; until [ -e go-on ]; do sleep 0.1; done", mode="code")
    run = asyncio.create_task(thread.decide(APPROVE))
    await until(web.file("begun").exists)
    here = Thread(client, thread.id)
    attempts: list[Any] = [
        here.say("hello"),
        client.threads.update_state(thread.id, {"mode": "ask"}),
        client.threads.delete(thread.id),
    ]
    for attempt in attempts:
        with pytest.raises((APIStatusError, HTTPStatusError), match=r"409|has a run"):
            await attempt
    first, *_ = await client.runs.list(thread.id)
    joined = asyncio.create_task(client.runs.join(thread.id, first["run_id"]))
    await client.runs.cancel(thread.id, first["run_id"])
    await asyncio.gather(run, joined, return_exceptions=True)
    expire_claims(server.database)
    await until_free(here, "hello")
    assert not web.file("go-on").exists()
    assert len(await client.runs.list(thread.id, status="running")) == 0


async def test_a_run_that_ended_in_another_process_has_an_end_for_who_reconnects(
    client: LangGraphClient, elsewhere: LangGraphClient
) -> None:
    """As the page does: with the last event that it knows."""
    thread = await Thread.new(elsewhere)
    await thread.say("hello")
    (run,) = await client.runs.list(thread.id)
    followed = client.runs.join_stream(thread.id, run["run_id"], last_event_id="-")
    async with asyncio.timeout(SECONDS):
        assert [part.event async for part in followed] == ["end"]


async def until_free(thread: Thread, text: str) -> None:
    """Say it, as soon as the thread has no run."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await thread.say(text)
            except (APIStatusError, HTTPStatusError) as error:
                assert error.response.status_code == 409
                await asyncio.sleep(0.5)
            else:
                return


@contextmanager
def holding(database: str) -> Iterator[Callable[[], bool]]:
    """During the block no run begins; says whether there is one that waits."""
    with psycopg.connect(database) as holder, psycopg.connect(database, autocommit=True) as looker:
        holder.execute("LOCK TABLE holders IN ACCESS EXCLUSIVE MODE")
        yield lambda: looker.execute(WAITING).fetchone() is not None


def expire_claims(database: str) -> None:
    """As if its process had been killed or stopped half a minute ago; none lasts longer."""
    with psycopg.connect(database) as connection:
        (left,) = connection.execute(LONGEST).fetchone() or (0,)
        assert left <= 30
        connection.execute("UPDATE thread_claims SET expires = 0")
        connection.execute("UPDATE effects SET lease = 0 WHERE state = 'started'")
        connection.execute("UPDATE runs SET updated_at = updated_at - interval '1 minute'")


async def begin_answer(thread: Thread) -> str:
    """The id of a run that approves what waits."""
    resume = {"decisions": [APPROVE], "question": await thread.question()}
    run = await thread.client.runs.create(thread.id, "agent", command={"resume": resume})
    return run["run_id"]


async def test_an_answer_that_was_cut_off_can_be_given_again(server: AegraServer, web: Web) -> None:
    thread = await web.say("write cut-off.txt: x", mode="code")
    with holding(server.database) as is_held:
        run = await begin_answer(thread)
        await until(is_held)
        await web.client.runs.cancel(thread.id, run)
        await until(lambda: not is_held())
    await web.client.runs.join(thread.id, run)
    assert await thread.waiting()
    await thread.decide(APPROVE)
    assert web.file("cut-off.txt").read_text() == "x"


async def test_what_a_stopped_process_has_left_is_settled_when_the_thread_is_read(
    server: AegraServer, other: AegraServer, client: LangGraphClient, elsewhere: LangGraphClient
) -> None:
    """It goes on with the run in vain."""
    assert other.process is not None
    thread = await Thread.new(elsewhere)
    await thread.say("write stopped.txt: x", mode="code")
    with holding(server.database) as is_held:
        await begin_answer(thread)
        await until(is_held)
        os.kill(other.process.pid, signal.SIGSTOP)
        try:
            expire_claims(server.database)
            assert (await client.threads.get(thread.id))["status"] == "interrupted"
            assert not await client.runs.list(thread.id, status="running")
        finally:
            os.kill(other.process.pid, signal.SIGCONT)
        await until(lambda: not is_held())
    here = Thread(client, thread.id)
    await here.decide(APPROVE)
    assert (server.workspace / "stopped.txt").read_text() == "x"


async def test_what_a_killed_process_was_doing_is_not_done_again(
    other: AegraServer, web: Web
) -> None:
    """The last test here: it ends the other one."""
    line = "run echo x >> killed.log; until [ -e go ]; do sleep 0.1; done"
    async with other.client as elsewhere:
        thread = await Thread.new(elsewhere)
        await thread.say(line, mode="code")
        run = asyncio.create_task(thread.decide(APPROVE))
        await until(web.file("killed.log").exists)
        other.kill()
        run.cancel()  # which would look for the server for a minute
        await asyncio.gather(run, return_exceptions=True)
    expire_claims(other.database)
    here = Thread(web.client, thread.id)
    async with asyncio.timeout(SECONDS):
        while not (await web.get(thread, "question"))["is_cut_off"]:
            await asyncio.sleep(0.5)
    assert (await web.client.threads.get(thread.id))["status"] == "interrupted"
    await here.say("list")
    assert web.file("killed.log").read_text() == "x\n"
    web.file("go").touch()  # nobody else ends the killed process's command
    assert "it may have taken effect" in str(await here.values())


@pytest.mark.usefixtures("is_there", "postgres")
async def test_processes_killed_while_the_database_is_away_are_replaced_when_it_is_back(
    tmp_path: Path,
) -> None:
    """A message with which none of them had begun is answered; and one that waits can be ended.

    While it is away each route says so, and all works again with it.
    """
    programs = find_postgres()
    assert programs is not None
    with (
        run_postgres(programs) as postgres,
        serving(tmp_path, postgres.make_database(), workers=2, DATABASE_TIMEOUT="10") as server,
    ):
        async with server.client as client:
            thread = await Thread.new(client)
            postgres.stop()
            await check_routes(server, thread.id)
            postgres.start()
            await thread.say("hello")
            with holding(server.database) as is_held:
                given: Any = {"messages": [{"role": "user", "content": "list"}]}
                await client.runs.create(thread.id, "agent", input=given)
                await until(is_held)
                for process in find_workers(server):
                    process.kill()
            postgres.stop()
            await until(lambda: server.log.read_text().count("waits for the database") == 2)
            waiting, _ = find_workers(server)
            waiting.terminate()
            waiting.wait(SECONDS)
            postgres.start()
            expire_claims(server.database)
            run, *_ = await client.runs.list(thread.id)
            await client.runs.join(thread.id, run["run_id"])
            types = [message["type"] for message in (await thread.values())["messages"]]
            assert types == ["human", "ai", "human", "ai", "tool", "ai"]


ROUTES = {
    "GET /threads/{}": None,
    "GET /threads/{}/state": None,
    "GET /threads/{}/mode": None,
    "PATCH /threads/{}/mode": {"mode": "code"},
    "POST /threads": {},
    "POST /threads/search": {},
    "POST /threads/{}/runs/stream": {"assistant_id": "agent", "input": {"messages": []}},
    "POST /modeshift/threads": {},
    "GET /metrics": None,
}


async def check_routes(server: AegraServer, thread: str) -> None:
    """None works without the database, and each says why."""
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as http:
        asked = (
            http.request(*route.format(thread).split(), json=ROUTES[route]) for route in ROUTES
        )
        for route, answer in zip(ROUTES, await asyncio.gather(*asked), strict=True):
            assert answer.status_code == 503, route
            assert answer.json()["detail"].startswith("Postgres at 127.0.0.1/t"), route


def find_workers(server: AegraServer) -> list[psutil.Process]:
    """They alone: not the process that starts others in their place."""
    assert server.process is not None
    started = psutil.Process(server.process.pid).children()
    return [process for process in started if "spawn_main" in " ".join(process.cmdline())]


def test_processes_that_start_together_make_the_tables_once(
    is_there: None, postgres: Postgres, tmp_path: Path
) -> None:
    """As the agents of compose.yaml do; Aegra's own migrations fail then."""
    server = AegraServer(tmp_path, postgres.make_database())
    code = "import asyncio, sys, modeshift.aegra.claims as c; print(flush=True); sys.stdin.read()"
    command = [PYTHON, "-c", f"{code}; asyncio.run(c.prepare_database())"]
    config = str(ENGINE / "modeshift/aegra/aegra.json")
    env = server.environment(DATABASE_URL=server.database, AEGRA_CONFIG=config)
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        start = partial(subprocess.Popen, command, env=env, cwd=server.folder, **pipes)
        started: list[Any] = [stack.enter_context(start()) for _ in range(2)]
        for process in started:
            process.stdout.readline()  # has imported what it needs
        for process in started:
            process.stdin.close()
        for process in started:
            process.stdout.read()
    assert [process.returncode for process in started] == [0, 0]


def test_without_its_auth_nothing_is_served(server: AegraServer, tmp_path: Path) -> None:
    """Aegra alone would go on, and everybody would be the same user."""
    config = ENGINE / "modeshift/aegra/aegra.json"
    settings = json.loads(config.read_text())
    settings["graphs"]["agent"] = str(config.with_name("graph.py")) + ":agent"
    settings["auth"]["path"] = "modeshift.aegra.no_such_module:auth"
    (tmp_path / "aegra.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [PYTHON, "-c", "import modeshift.aegra.server"],
        env=server.environment(
            DATABASE_URL=server.database, AEGRA_CONFIG=str(tmp_path / "aegra.json")
        ),
        cwd=server.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Aegra has not taken modeshift.aegra.auth: nothing is served" in done.stderr
