"""The real dev server, started as ``make dev`` starts it, in a folder of its own."""

import asyncio
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.harness import prefork
from tests.harness.conversation import SECONDS, until
from tests.harness.modes import MODES
from tests.harness.place import environment
from tests.harness.root import TEMPLATE

LINKED = ("graph", "modes", "prompts", "tools", "langgraph.json")


class Server:
    """A clone in ``folder``, on which a server can be started and ended several times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        # Links, because the server writes files beside langgraph.json; .env is left out.
        for name in LINKED:
            (folder / name).symlink_to(TEMPLATE / name)
        self.modes = folder / "template/modes"
        (folder / "template").symlink_to(MODES.parent)
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.process: prefork.Started | None = None
        self.host = "127.0.0.1"
        self.port = free_port()

    def environment(self, **settings: str) -> dict[str, str]:
        """This process's environment, with the settings of this server instead of the user's."""
        return environment(self.folder, **{"MODES_FOLDER": str(self.modes), **settings})

    def command(self, *command: str, **settings: str) -> prefork.Started:
        """Start a process, by default the one that ``make dev`` starts."""
        command = command or ("modeshift", "dev", "--port", str(self.port))
        env = self.environment(**settings)
        with self.log.open("ab") as log, Path(os.devnull).open() as no:
            streams = (no.fileno(), log.fileno(), log.fileno())
            return prefork.start(
                *command, cwd=self.folder, env=env, streams=streams, is_leader=True
            )

    def spawn(self, python: str | Path, *command: str, **settings: str) -> Any:
        """The same by another Python, which imports all anew."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [python, "-m", *command], cwd=self.folder, env=self.environment(**settings),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    def start(self, *command: str, **settings: str) -> None:
        """Start, and wait until it answers: ``make dev`` says so, of others it is asked."""
        self.host = settings.get("LISTEN", self.host)
        before = self.count_starts()
        self.process = self.command(*command, **settings)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if self.is_answering() if command else self.count_starts() > before:
                return
            time.sleep(0.1)
        self.kill()
        raise RuntimeError(self.log.read_text())

    def count_starts(self) -> int:
        return self.log.read_text().count("\naddress ") if self.log.exists() else 0

    def is_answering(self) -> bool:
        """Whether it answers at all, a refusal included."""
        try:
            with urllib.request.urlopen(f"{self.url}/ok", timeout=1):
                return True
        except HTTPError:
            return True
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it, like a power cut."""
        assert self.process is not None
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    async def stop(self, held_in: Path | None = None) -> None:
        """Tell it to stop and wait for its end; ``held_in``: where a command waits for ``go``."""
        process = self.process
        assert process is not None
        os.kill(process.pid, signal.SIGTERM)
        if held_in is not None:
            await until(lambda: "the server stops" in self.log.read_text())
            (held_in / "go").touch()
        await until(lambda: process.poll() is not None)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def client(self) -> LangGraphClient:
        return self.get_client()

    def get_client(self, token: str = "", scheme: str = "Bearer") -> LangGraphClient:
        headers = {"Authorization": f"{scheme} {token}"} if token else None
        return get_client(url=self.url, headers=headers)


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    """A server that runs during the block."""
    server = Server(folder)
    server.start(**settings)
    try:
        yield server
    finally:
        server.kill()


def lose_checkpoint(folder: Path, thread: str) -> None:
    """Leave a step's results without the checkpoint behind it, as a crash between them does."""
    with closing(sqlite3.connect(folder / "checkpoints.sqlite")) as database, database:
        newest = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?"
        ((id,),) = database.execute(newest, (thread,))
        for table in ("checkpoints", "writes"):
            database.execute(f"DELETE FROM {table} WHERE checkpoint_id = ?", (id,))  # noqa: S608


class Thread:
    """A thread on the server."""

    def __init__(self, client: LangGraphClient, id: str) -> None:
        self.client = client
        self.id = id
        self.nodes: list[str] = []
        self.error: dict[str, str] | None = None

    @classmethod
    async def new(cls, client: LangGraphClient) -> "Thread":
        return cls(client, (await client.threads.create())["thread_id"])

    async def run(self, **given: Any) -> None:
        self.nodes, self.error = [], None
        async for part in self.client.runs.stream(
            self.id, "agent", stream_mode=["updates"], **given
        ):
            if part.event == "updates":
                self.nodes += [name for name in part.data if name != "__interrupt__"]
            elif part.event == "error":
                self.error = part.data

    async def say(self, text: str, **host: Any) -> None:
        await self.run(input={"messages": [{"role": "user", "content": text}], **host})

    async def decide(self, *decisions: dict[str, Any]) -> None:
        """Answer the question that waits, and no other."""
        state: Any = await self.client.threads.get_state(self.id)
        names = [interrupt["value"]["question"] for interrupt in state["interrupts"]]
        resume = {"decisions": list(decisions), **({"question": names[0]} if names else {})}
        await self.run(command={"resume": resume})

    async def look(self) -> None:
        """Read the question for as long as an answer that names none needs."""
        state = await self.client.threads.get_state(self.id)
        asked = datetime.fromisoformat(str(state["created_at"])).timestamp()
        await asyncio.sleep(max(0, asked + 1 - time.time()))

    async def values(self) -> dict[str, Any]:
        state = await self.client.threads.get_state(self.id)
        return dict(state["values"])  # type: ignore[arg-type]  # a mapping, for this graph

    async def waiting(self) -> list[dict[str, Any]]:
        state = await self.client.threads.get_state(self.id)
        interrupts: Any = state["interrupts"]
        return list(interrupts[0]["value"]["action_requests"]) if interrupts else []

    async def asked(self, argument: str = "") -> list[Any]:
        """The names of the calls that wait, or this argument of each."""
        calls = await self.waiting()
        return [call["args"][argument] if argument else call["name"] for call in calls]

    async def question(self) -> str:
        """The name of the question that waits."""
        state: Any = await self.client.threads.get_state(self.id)
        return str(state["interrupts"][0]["value"]["question"])

    async def mode(self) -> str:
        return str((await self.values())["mode"])


@dataclass(frozen=True)
class Web:
    """A server that runs, with LangGraph's client and a plain one for it."""

    server: Server
    client: LangGraphClient
    http: httpx.AsyncClient

    def file(self, name: str) -> Path:
        return self.server.workspace / name

    async def say(self, text: str, **host: Any) -> Thread:
        """A new thread in which this has been said."""
        thread = await Thread.new(self.client)
        await thread.say(text, **host)
        return thread

    async def make(self, **given: Any) -> Thread:
        """A new thread with these settings, by the engine's own route."""
        made = await self.http.post("/modeshift/threads", json=given)
        return Thread(self.client, made.json()["thread_id"])

    async def copy(self, thread: Thread) -> Thread:
        copied = await self.http.post(f"/threads/{thread.id}/copy", json={})
        return Thread(self.client, copied.json()["thread_id"])

    async def patch(self, thread: Thread, **given: Any) -> dict[str, Any]:
        """Set the thread's mode, limit or approvals; what is answered."""
        answer = await self.http.patch(f"/threads/{thread.id}/mode", json=given)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def get(self, thread: Thread, what: str = "mode") -> Any:
        """What ``/threads/{id}/mode`` says, or another path of the thread's."""
        return (await self.http.get(f"/threads/{thread.id}/{what}")).json()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
