"""``python -m tests.chaos --kills 200 --database sqlite``: prints what was counted, as JSON.

Processes are forked from this one, which has no threads and no connection: so a new one is there
in milliseconds, and is killed anywhere.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from langchain_core.messages import ToolMessage

from modeshift.modes.phases import Phase
from modeshift.threads.routing import is_cut_off
from tests.chaos.worker import (
    POINTS,
    Place,
    begin,
    find_kind,
    kill_at,
    list_calls,
    make,
    resume_at,
    run,
)
from tests.harness.conversation import problems
from tests.harness.faults import planted
from tests.harness.postgres import find_postgres, run_postgres

PROBLEMS = (
    "effects twice",
    "ran but told not run",
    "told done but did not run",
    "lost without a word",
    "messages doubled",
    "threads that look finished and are not",
    "approvals lost",
    "results lost",
)
FAULTS: dict[str, dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "faults.yaml").read_text(encoding="utf-8")
)


def fork(work: Callable[[], Awaitable[None]], point: str = "", number: int = 1) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        if point:
            kill_at(point, number)
        asyncio.run(work())  # type: ignore[arg-type]  # a coroutine
        os._exit(0)
    except BaseException:  # noqa: BLE001  # this is the whole process
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def wait(pid: int, seconds: float = 120) -> int:
    """The signal that has ended the process, 0 for none."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            if os.WIFSIGNALED(status):
                return os.WTERMSIG(status)
            if os.WEXITSTATUS(status):
                raise RuntimeError("a process has failed; its error is above")
            return 0
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise RuntimeError(f"a process has not ended within {seconds} s")


def read_words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


class Chaos:
    def __init__(self, place: Place, seed: int, point: str | None) -> None:
        """``point`` is where each process kills itself the first time; None: anywhere."""
        self.place = place
        # At an empty one it is killed at a random moment.
        self.points = [*POINTS, "", "", "", ""] if point is None else [point]
        self.numbers = (1, 2) if point is None else (1,)
        self.random = random.Random(seed)
        self.counts = Counter(dict.fromkeys(PROBLEMS, 0))
        self.done = place.folder / "done"
        place.workspace.mkdir()

    def prepare(self, threads: Sequence[str]) -> None:
        for thread in threads:
            (self.place.workspace / thread).write_text("END")

    def left(self, threads: Sequence[str]) -> list[str]:
        done = read_words(self.done)
        return [thread for thread in threads if thread not in done]

    def work(
        self, threads: Sequence[str], is_relieved: Callable[[], bool] = lambda: False
    ) -> Callable[[], Awaitable[None]]:
        def report(thread: str) -> None:
            with self.done.open("a") as file:
                file.write(f"{thread}\n")

        return lambda: run(self.place, threads, report, is_relieved)

    def kill(self, kills: int) -> None:
        """Kill so often, at random moments and on purpose; then let what is left end."""
        number = 0
        while self.counts["kills"] < kills:
            batch = [f"t-{number + n}" for n in range(5)]
            number += len(batch)
            self.prepare(batch)
            while (left := self.left(batch)) and self.counts["kills"] < kills:
                self._kill_once(left)
            if left:
                wait(fork(self.work(left)))
            asyncio.run(self.check(batch))
        self.counts["threads"] += number

    def _kill_once(self, threads: Sequence[str]) -> None:
        point = self.random.choice(self.points)
        is_held = self.random.random() < 0.15
        pid = fork(self.work(threads), point, self.random.choice(self.numbers))
        if is_held:
            self.hold()
        if not point:
            time.sleep(self.random.uniform(0.02, 0.5))
            os.kill(pid, signal.SIGKILL)
        if wait(pid) == signal.SIGKILL:
            self.counts["kills"] += 1
            self.counts[f"killed at {point or 'random'}"] += 1
            asyncio.run(self.look(threads))

    def hold(self) -> None:
        """Another program has the database's lock for a moment."""
        if self.place.url or not self.place.file.exists():
            return
        with closing(sqlite3.connect(self.place.file, timeout=5)) as database:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(self.random.uniform(0.05, 0.3))
            database.rollback()

    def take_over(self, times: int) -> None:
        """One process is stopped past its lease, another takes over, and the first goes on."""
        for turn in range(times):
            batch = [f"s-{turn * 5 + n}" for n in range(5)]
            self.prepare(batch)
            relieved = self.place.folder / f"relieved-{turn}"
            first = fork(self.work(batch, relieved.exists))
            time.sleep(self.random.uniform(0.05, 0.4))
            os.kill(first, signal.SIGSTOP)
            time.sleep(self.place.lease * 1.2)
            relieved.touch()
            second = fork(self.work(self.left(batch)))
            time.sleep(self.random.uniform(0, 0.5))
            os.kill(first, signal.SIGCONT)
            wait(first)
            wait(second)
            wait(fork(self.work(batch)))  # whichever branch is left
            self.counts["taken over"] += 1
            asyncio.run(self.check(batch, is_alone=False))

    def resume_twice(self, times: int) -> None:
        """Two processes approve the same question in the same millisecond."""
        threads = [f"r-{n * 5 + n % 3}" for n in range(times)]  # of those kinds that ask
        self.prepare(threads)

        async def ask() -> None:
            async with self.place.open() as (saver, journal):
                agent = make(self.place, saver, journal)
                for thread in threads:
                    await begin(agent, thread)

        wait(fork(ask), 600)
        size = 20
        for first in range(0, times, size):
            some = threads[first : first + size]
            first_start = time.time() + 1
            starts = [first_start + n * 0.4 for n in range(len(some))]
            pids = [fork(partial(resume_at, self.place, some, starts)) for _ in range(2)]
            for pid in pids:
                wait(pid)
        wait(fork(self.work(threads)), 600)  # whichever branch is left
        self.counts["double resumes"] += times
        asyncio.run(self.check(threads, is_alone=False))

    async def look(self, threads: Sequence[str]) -> None:
        """Count threads that a client would take for finished, before anybody goes on with them."""
        async with self.place.open() as (saver, journal):
            agent = make(self.place, saver, journal)
            for thread in threads:
                state = await agent.aget_state({"configurable": {"thread_id": thread}})
                messages = state.values.get("messages", [])
                is_answer = bool(messages) and messages[-1].type == "ai"
                is_over = not messages or (is_answer and not messages[-1].tool_calls)
                goes_on = is_cut_off(state.values, state.tasks, state.interrupts)
                if not (is_over or goes_on or state.interrupts):
                    self.counts["threads that look finished and are not"] += 1
                    sys.stderr.write(f"{thread} ({find_kind(thread)}) looks finished\n")

    async def check(self, threads: Sequence[str], *, is_alone: bool = True) -> None:
        """Count what went wrong; ``is_alone``: no two processes had a thread at once."""
        await asyncio.sleep(0.3)  # a command may outlive its process
        async with self.place.open() as (saver, journal):
            agent = make(self.place, saver, journal)
            log = Counter(read_words(self.place.log))
            for thread in threads:
                state = await agent.aget_state({"configurable": {"thread_id": thread}})
                self._check_thread(thread, state, log[thread], is_alone=is_alone)

    def _check_thread(self, thread: str, state: Any, lines: int, *, is_alone: bool) -> None:
        finished = read_words(self.place.finished) if is_alone else []
        messages = state.values.get("messages", [])
        results = {
            message.tool_call_id: message
            for message in messages
            if isinstance(message, ToolMessage)
        }
        said = [
            message
            for message in messages
            if message.type == "human" and message.text == f"do {thread}"
        ]
        problems_found = Counter[str]()
        problems_found["messages doubled"] += len(said) > 1 or bool(problems(messages))
        problems_found["lost without a word"] += not said
        is_over = state.values.get("phase") == Phase.IDLE and not state.next
        problems_found["threads that look finished and are not"] += not is_over
        for call in list_calls(thread):
            marks = (self.place.workspace / thread).read_text().count("+")
            times = marks if call["name"] == "edit_file" else lines
            result = results.get(call["id"])
            text = "" if result is None else result.text
            is_unknown = "may have taken effect" in text
            problems_found["effects twice"] += times > 1
            problems_found["ran but told not run"] += text.startswith("Not run") and times > 0
            is_success = result is not None and result.status == "success"
            problems_found["told done but did not run"] += is_success and times == 0
            problems_found["lost without a word"] += result is None
            problems_found["approvals lost"] += text.startswith("Not run") and times == 0
            problems_found["results lost"] += is_unknown and call["id"] in finished
            self.counts["calls"] += 1
            self.counts["told unknown"] += is_unknown
            if not (is_success or is_unknown):
                sys.stderr.write(f"{thread} ({find_kind(thread)}): {text!r}\n")
        if bad := +problems_found:
            seen = [message.type for message in messages], state.values.get("phase"), state.next
            sys.stderr.write(f"{thread} ({find_kind(thread)}): {dict(bad)} {seen}\n")
        self.counts += problems_found


def main() -> None:
    parser = argparse.ArgumentParser("tests.chaos")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--resumes", type=int, default=200)
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--fault", choices=FAULTS, help="plant it, to see that it is found")
    options = parser.parse_args()
    os.environ["SANDBOX"] = "off"
    programs = find_postgres()
    if options.database == "postgres" and programs is None:
        sys.exit("Postgres is not installed (apt install postgresql)")
    with TemporaryDirectory() as folder:
        is_postgres = options.database == "postgres" and programs is not None
        with run_postgres(programs) if is_postgres and programs else nullcontext() as server:
            place = Place(Path(folder), server.make_database() if server else "", 3.0)
            asyncio.run(_set_up(place))
            fault = FAULTS.get(options.fault, {})
            chaos = Chaos(place, options.seed, fault.get("point"))
            began = time.monotonic()
            with planted(fault):
                chaos.kill(options.kills)
                chaos.take_over(options.stops)
                chaos.resume_twice(options.resumes)
    counted = {name: chaos.counts[name] for name in PROBLEMS}
    rest = {name: count for name, count in sorted(chaos.counts.items()) if name not in counted}
    seconds = round(time.monotonic() - began)
    about = {"database": options.database, "seed": options.seed, "seconds": seconds}
    sys.stdout.write(json.dumps({**about, **rest, **counted}, indent=1) + "\n")
    sys.exit(any(counted.values()))


async def _set_up(place: Place) -> None:
    async with place.open() as (_, journal):
        await journal.take_input("", "")


if __name__ == "__main__":
    main()
