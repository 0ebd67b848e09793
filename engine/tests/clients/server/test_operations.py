"""What an operator has: readiness, metrics, traces, JSON logs, and a stop that lets a step end."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.conversation import APPROVE, until
from tests.harness.server import Server, Thread, running
from tests.provider.server import Handler, listening
from tests.tools.sandbox.commands import needs_sandbox

TOKEN = "alice-0123456789abc"  # noqa: S105  # of this test alone
SECRET = "zebra"  # noqa: S105  # as above


SPANS: list[Any] = []


class Collector(Handler):
    """Takes spans as a collector of OpenTelemetry's does."""

    def do_POST(self) -> None:  # noqa: N802  # as http.server calls it
        assert self.headers.get("content-encoding") != "gzip"
        body = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                SPANS.extend(scope.spans)
        self.begin(200, {"content-length": "0"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    settings = {
        "AUTH_TOKEN": f"alice:{TOKEN}",
        "LOG_FORMAT": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    server = Server(tmp_path_factory.mktemp("clone"))
    with listening(collector):
        server.start("modeshift", "dev", "--port", str(server.port), **settings)
        yield server
        server.kill()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.get_client(TOKEN) as client:
        yield client


async def read_metrics(server: Server) -> dict[tuple[str, ...], float]:
    """By the sample's name and the values of its labels, those by name."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        answer = await http.get("/metrics")
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    samples = [sample for family in families for sample in family.samples]
    return {
        (each.name, *(each.labels[name] for name in sorted(each.labels))): each.value
        for each in samples
    }


GROWN: dict[tuple[str, ...], float] = {
    ("modeshift_step_seconds_count", "intake"): 2,
    ("modeshift_step_seconds_count", "act"): 1,
    ("modeshift_model_seconds_count", "offline"): 4,
    ("modeshift_calls_total", "edit", "done"): 1,
    ("modeshift_refusals_total", "404"): 1,
    ("modeshift_effects", "done"): 1,
    ("modeshift_effects", "unknown"): 0,
}


async def test_metrics_say_what_was_done(server: Server, client: LangGraphClient) -> None:
    before = await read_metrics(server)
    thread = await Thread.new(client)
    await thread.say(f"write note.txt: {SECRET}", mode="code", approvals="manual")
    asking = await read_metrics(server)
    assert asking["modeshift_questions_open",] == before["modeshift_questions_open",] + 1
    assert 0 < asking["modeshift_question_age_seconds",] < 600
    await thread.decide(APPROVE)
    await thread.say("write other.txt: x")
    await thread.decide({"type": "reject"})
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.post("/internal/truncate", json={})).status_code == 404
    after = await read_metrics(server)

    def grown(*key: str) -> float:
        return after.get(key, 0) - before.get(key, 0)

    assert {key: grown(*key) for key in GROWN} == GROWN
    assert grown("modeshift_tokens_total", "input", "offline") > 100
    assert ("modeshift_tokens_total", "cache_read", "offline") in after
    assert after["modeshift_questions_open",] == before["modeshift_questions_open",]
    assert SECRET not in str(after)


async def test_metrics_want_a_token_and_readiness_does_not(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/metrics")).status_code == 401
        answer = await http.get("/modeshift/ready")
        assert (answer.status_code, answer.json()) == (200, {"ready": True, "problem": None})


async def test_without_its_database_the_server_is_not_ready(server: Server) -> None:
    file, moved = server.folder / "checkpoints.sqlite", server.folder / "moved.sqlite"
    file.rename(moved)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        answer = await http.get("/modeshift/ready")
        moved.rename(file)
        assert answer.status_code == 503
        assert "the database does not answer" in answer.json()["problem"]
        assert (await http.get("/ok")).status_code == 200


async def test_spans_have_names_and_numbers_alone(client: LangGraphClient) -> None:
    thread = await Thread.new(client)
    await thread.say(f"search {SECRET}", mode="code")

    def list_mine() -> list[Any]:
        return [span for span in SPANS if thread.id in str(span.attributes)]

    await until(lambda: len(list_mine()) == 4)
    steps = {span.span_id: span for span in list_mine()}
    inner = [span for span in SPANS if span.parent_span_id in steps]
    assert sorted(span.name for span in inner) == ["call", "model", "model"]
    named = {pair.key: pair.value for span in inner for pair in span.attributes}
    assert named["modeshift.input"].int_value > 0
    assert named["modeshift.state"].string_value == "done"
    assert SECRET not in str(SPANS)


async def test_each_line_of_the_log_is_json_without_content(
    server: Server, client: LangGraphClient
) -> None:
    thread = await Thread.new(client)
    await thread.say(f"read {SECRET}.txt", mode="code")
    async with httpx.AsyncClient(base_url=server.url) as http:
        await http.get(f"/threads/{SECRET}")

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in server.log.read_text().splitlines() if line]

    await until(lambda: any(line.get("thread_id") == thread.id for line in read()))
    (line, *_) = [line for line in read() if line.get("thread_id") == thread.id]
    assert len(line["run_id"]) == 36
    assert f"read {SECRET}" not in server.log.read_text()


SPOKEN = f"""
import logging, warnings
from structlog import processors, stdlib
from modeshift.server.logs import shorten_log
formatter = stdlib.ProcessorFormatter(
    processors=[stdlib.ProcessorFormatter.remove_processors_meta, processors.JSONRenderer()],
    foreign_pre_chain=[stdlib.add_logger_name],
)
handler = logging.StreamHandler()
handler.setFormatter(formatter)
logging.getLogger().addHandler(handler)
shorten_log(has_content=False)
logging.getLogger("aegra_api.any").error("Failed to read a state: {SECRET}")
logging.getLogger("any").error("Refused http://127.0.0.1/store?key={SECRET}")
warnings.warn("{SECRET}")
logging.getLogger("modeshift").warning("refused POST /runs: a reason of ours")
"""


def test_what_others_put_into_an_event_is_left_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPOKEN], capture_output=True, text=True, check=True
    )
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events == [
        "Failed to read a state", "Refused http://127.0.0.1/store", "<string>:15",
        "refused POST /runs: a reason of ours",
    ]  # fmt: skip


STOP = {"SANDBOX": "auto", "APPROVALS": "auto"}
HELD = "run touch began; until [ -e go ]; do sleep 0.05; done; echo one >> log\nwrite later.txt: x"


async def begin(server: Server, client: LangGraphClient) -> tuple[Thread, Any]:
    """A command goes on, and a call is to follow it."""
    thread = await Thread.new(client)
    given: Any = {"messages": [{"role": "user", "content": HELD}], "mode": "code"}
    run = await client.runs.create(thread.id, "agent", input=given)
    await until((server.workspace / "began").exists)
    return thread, run


@needs_sandbox
async def test_sigterm_lets_the_call_end_and_hands_the_rest_over(tmp_path: Path) -> None:
    """``later.txt`` is written when somebody has gone on; the command has run once."""
    with running(tmp_path, **STOP) as server:
        async with server.client as client:
            thread, run = await begin(server, client)
            watching = asyncio.create_task(client.runs.join(thread.id, run["run_id"]))
            await server.stop(held_in=server.workspace)
            await asyncio.wait({watching})
            watching.cancelled() or watching.exception()
        assert (server.workspace / "log").read_text() == "one\n"
        assert not (server.workspace / "later.txt").exists()
        server.start(**STOP)
        async with server.client as client:
            thread = Thread(client, thread.id)
            said: Any = await client.http.get(f"/threads/{thread.id}/question")
            assert said["is_cut_off"]
            await thread.run(input=None)
            assert (server.workspace / "later.txt").read_text() == "x"
            assert (server.workspace / "log").read_text() == "one\n"


@needs_sandbox
async def test_a_call_that_takes_too_long_is_ended_and_told_as_unknown(tmp_path: Path) -> None:
    with running(tmp_path, STOP_SECONDS="1", **STOP) as server:
        async with server.client as client:
            thread, _ = await begin(server, client)
            await server.stop()
        server.start(**STOP)
        async with server.client as client:
            thread = Thread(client, thread.id)
            await thread.run(input=None)
            assert "may have taken effect" in str(await thread.values())
        assert not (server.workspace / "log").exists()


@needs_sandbox
async def test_a_run_that_has_not_begun_begins_at_the_next_start(tmp_path: Path) -> None:
    with running(tmp_path, **STOP) as server:
        async with server.client as client:
            thread, _ = await begin(server, client)
            given: Any = {"messages": [{"role": "user", "content": "write queued.txt: x"}]}
            await client.runs.create(thread.id, "agent", input=given, multitask_strategy="enqueue")
            await server.stop(held_in=server.workspace)
        assert not (server.workspace / "queued.txt").exists()
        server.start(**STOP)
        await until((server.workspace / "queued.txt").exists)
        with closing(sqlite3.connect(server.folder / "checkpoints.sqlite")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
