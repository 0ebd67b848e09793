"""``make load``: many threads at once, each with a message, a question, a decision and an end.

The server that ``make dev`` starts, and LangGraph's own with an agent of its own parts, in turn in
every round: the ratio holds on a busy machine. All have the same model. On SQLite both store each
step before the next begins; in memory, LangGraph's server is as it is by default. With
``--processes``, ours as ``make serve`` starts it, on a Postgres that does not wait for its disk.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.harness.aegra import AegraServer
from tests.harness.postgres import find_postgres, run_postgres
from tests.harness.server import Server

PEER = Path(__file__).with_name("load_peer.py")
OURS, REFERENCE = "modeshift", "LangGraph, SQLite"
SAMPLE = 20
"""Of how many threads the steps are read."""
CONTENDERS = (OURS, REFERENCE, "LangGraph, memory")


@dataclass
class Times:
    """Seconds, of all rounds."""

    questions: list[float] = field(default_factory=list)
    """From a message to its question."""
    ends: list[float] = field(default_factory=list)
    """From a decision to the run's end."""
    steps: list[float] = field(default_factory=list)
    """From one checkpoint of a run to its next: a node's turn and its storing, of some threads."""
    rates: list[float] = field(default_factory=list)
    """Runs per second of each round; a thread has two."""
    costs: list[float] = field(default_factory=list)
    """The server's seconds of processor for a run, of each round."""


class Contender:
    """A server that runs, and one connection per thread to it."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.client = httpx.AsyncClient(
            base_url=server.url,
            headers={"Host": "localhost"},
            timeout=600,
            # Under load this process reads an answer late, and by then the server may have closed
            # the connection, idle for five seconds: what is sent on it next is a ReadError.
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
        )
        self.workspace = server.workspace
        assert server.process is not None
        self._process = psutil.Process(server.process.pid)
        self._files = 0
        self._ended = deque[str](maxlen=SAMPLE)

    def _list_processes(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def measure_memory(self) -> int:
        """Bytes that the server has in memory."""
        return sum(process.memory_info().rss for process in self._list_processes())

    def _measure_work(self) -> float:
        """Seconds of processor that it has taken."""
        return sum(sum(process.cpu_times()[:2]) for process in self._list_processes())

    async def load(self, threads: int, times: Times) -> None:
        """Have so many threads at once go from their message to their end."""
        began, worked = time.perf_counter(), self._measure_work()
        await asyncio.gather(*(self._use_thread(times) for _ in range(threads)))
        times.rates.append(2 * threads / (time.perf_counter() - began))
        times.costs.append((self._measure_work() - worked) / threads / 2)
        for thread in self._ended:
            await self._read_steps(thread, times)

    async def _read_steps(self, thread: str, times: Times) -> None:
        history = await self._post(f"/threads/{thread}/history", {"limit": 100})
        for after, before in pairwise(history):
            if after["metadata"].get("run_id") == before["metadata"].get("run_id"):
                end, begin = (datetime.fromisoformat(one["created_at"]) for one in (after, before))
                times.steps.append((end - begin).total_seconds())

    async def _use_thread(self, times: Times) -> None:
        await self.decide(*await self.ask(times), times)

    async def decide(self, thread: str, question: dict[str, str], times: Times) -> None:
        """Approve what the thread asks, and see it end."""
        decision = {**question, "decisions": [{"type": "approve"}]}
        began = time.perf_counter()
        values = await self._run(thread, command={"resume": decision})
        times.ends.append(time.perf_counter() - began)
        kinds = [message["type"] for message in values["messages"]]
        if "__interrupt__" in values or kinds[-2:] != ["tool", "ai"]:
            raise RuntimeError(f"{self.name}: the thread did not end: {json.dumps(values)[:2000]}")
        self._ended.append(thread)

    async def ask(self, times: Times) -> tuple[str, dict[str, str]]:
        """A thread whose question waits; and the question's id where the server gives one."""
        thread = (await self._post("/threads", {}))["thread_id"]
        self._files += 1
        message = {"role": "user", "content": f"write notes-{self._files}.txt: hello"}
        began = time.perf_counter()
        mode = {"mode": "code"} if self.name.startswith(OURS) else {}
        values = await self._run(thread, input={"messages": [message], **mode})
        times.questions.append(time.perf_counter() - began)
        if "__interrupt__" not in values:
            raise RuntimeError(f"{self.name} asks nothing: {json.dumps(values)[:2000]}")
        value = values["__interrupt__"][0]["value"]
        return thread, {key: value[key] for key in ("question",) if key in value}

    async def copy(self, thread: str, count: int) -> None:
        """Make so many threads that wait like this one, by a few clients at once."""
        left = iter(range(count))

        async def copy_some() -> None:
            for _ in left:
                await self._post(f"/threads/{thread}/copy", {})

        await asyncio.gather(*(copy_some() for _ in range(10)))

    async def _run(self, thread: str, **given: Any) -> Any:
        if self.name == REFERENCE:
            given["durability"] = "sync"  # as ours always is
        return await self._post(f"/threads/{thread}/runs/wait", {"assistant_id": "agent", **given})

    async def _post(self, path: str, body: Any) -> Any:
        answer = await self.client.post(path, json=body)
        if answer.is_error:
            raise RuntimeError(f"{self.name}: {path} gives {answer.status_code}: {answer.text}")
        return answer.json()


@contextmanager
def serving(name: str, folder: Path) -> Iterator[Server]:
    """The contender's server; all that it writes is in the folder."""
    folder.mkdir()
    server = Server(folder)
    server.workspace.mkdir()
    command: list[str] = []
    if name.startswith("LangGraph"):
        config: dict[str, Any] = {"dependencies": ["."], "graphs": {"agent": f"{PEER}:agent"}}
        if name == REFERENCE:
            config["checkpointer"] = {"path": f"{PEER}:checkpointer"}
        (folder / "langgraph.json").unlink()
        (folder / "langgraph.json").write_text(json.dumps(config))
        command = ["langgraph_cli", "dev", "--no-browser", "--no-reload", "--port"]
        command += [str(server.port), "--n-jobs-per-worker", "1000"]
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}
    quiet |= {"LANGSMITH_TRACING": "false", "LOG_LEVEL": "WARNING"}
    server.start(*command, WORKSPACE=str(server.workspace), MODEL="offline", **quiet)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def serving_in_processes(count: int, folder: Path) -> Iterator[Server]:
    """The same of ours, in so many processes."""
    folder.mkdir()
    if (programs := find_postgres()) is None:
        raise SystemExit("several processes need a Postgres on this machine")
    with run_postgres(programs) as postgres:
        server = AegraServer(folder, postgres.make_database())
        server.workspace.mkdir()
        server.serve(workers=count, WORKSPACE=str(server.workspace), MODEL="offline")
        try:
            yield server
        finally:
            server.kill()


async def bench(contenders: Sequence[Contender], given: argparse.Namespace) -> None:
    """Measure everything and print the table."""
    for contender in contenders:
        await contender.load(5, Times())
    for count in given.threads:
        await _compare(contenders, count, given.rounds)


async def bench_waiting(contenders: Sequence[Contender], given: argparse.Namespace) -> None:
    """The same while so many threads wait."""
    print(f"with {given.waiting:,} waiting threads")
    for contender in contenders:
        await _wait_among(contender, given.threads[0], given.waiting)
    await bench(contenders, given)


async def _wait_among(contender: Contender, threads: int, waiting: int) -> None:
    """Ask in some threads, have many more wait, and then answer those."""
    times = Times()
    asked = [await contender.ask(times) for _ in range(threads)]
    before, began = contender.measure_memory(), time.perf_counter()
    await contender.copy(asked[0][0], waiting)
    each = (contender.measure_memory() - before) / waiting / 1024
    seconds = time.perf_counter() - began
    await asyncio.gather(*(contender.decide(*one, times) for one in asked))
    print(
        f"  {contender.name:18}{each:8.1f} KiB a thread, made in {seconds:.0f} s; "
        f"{threads} decisions among them:{_describe(times.ends)} s",
        flush=True,
    )


async def _compare(contenders: Sequence[Contender], threads: int, rounds: int) -> None:
    times = {contender.name: Times() for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            await contender.load(threads, times[contender.name])
    for name, measured in times.items():
        pairs = zip(measured.rates, times[REFERENCE].rates, strict=True)
        ratio = statistics.median(rate / reference for rate, reference in pairs)
        kinds = (measured.questions, measured.ends, measured.steps)
        waits = (_describe(seconds) for seconds in kinds)
        rate = statistics.median(measured.rates)
        cost = statistics.median(measured.costs) * 1000
        row = f"  {name:18}{threads:8}{rate:8.1f}{ratio:7.2f}{cost:8.1f}  {'  '.join(waits)}"
        print(row, flush=True)


def _describe(seconds: Sequence[float]) -> str:
    """The median and the 95th percentile."""
    ends = f"{statistics.median(seconds):.2f} / {statistics.quantiles(seconds, n=20)[-1]:.2f}"
    return f"{ends:>18}"


async def run(
    work: Callable[[Sequence[Contender], argparse.Namespace], Awaitable[None]],
    servers: Mapping[str, Server],
    given: argparse.Namespace,
) -> None:
    """Do the work with a contender for each server."""
    contenders = [Contender(name, server) for name, server in servers.items()]
    await work(contenders, given)
    for contender in contenders:
        await contender.client.aclose()


@contextmanager
def serving_all(names: Sequence[str], processes: Sequence[int] = ()) -> Iterator[dict[str, Server]]:
    """The server of each name, new."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(name, Path(folder, str(number))))
            for number, name in enumerate(names)
        }
        for count in processes:
            running = serving_in_processes(count, Path(folder, f"processes-{count}"))
            servers[f"{OURS} x {count}"] = stack.enter_context(running)
        yield servers


def main() -> None:
    """Start the servers, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[50, 200], help="at once")
    parser.add_argument("--waiting", type=int, default=1000, help="threads that wait meanwhile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[], help="as make serve")
    given = parser.parse_args()
    heads = f"{'':20}{'threads':>8}{'runs/s':>8}{'ratio':>7}{'CPU ms':>8}"
    print(f"{heads}  question p50/p95 s  decision p50/p95 s      step p50/p95 s")
    with serving_all(CONTENDERS, given.processes) as servers:
        asyncio.run(run(bench, servers, given))
    if given.waiting:
        # New ones: one that was under load has memory to spare. Aegra copies no threads, and what
        # keeps them in memory looks at all for each copy.
        with serving_all(CONTENDERS[:2]) as servers:
            asyncio.run(run(bench_waiting, servers, given))


if __name__ == "__main__":
    main()
