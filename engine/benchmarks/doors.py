"""``make bench``: a new process until it takes a request or a key, and a server's memory.

Wall time and processor seconds, each contender in turn within a round; what other programs do
shows in the wall time alone.
"""

import argparse
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.harness.place import environment
from tests.harness.root import TEMPLATE
from tests.harness.server import free_port

SECONDS = 60
SERVERS = 10
EMPTY_GRAPH = """
from langgraph.graph import END, START, MessagesState, StateGraph

graph = StateGraph(MessagesState).add_edge(START, END).compile()
"""
ECHO = """
import asyncio
from uuid import uuid4
from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp import text_block, update_agent_message

class Echo(Agent):
    def on_connect(self, client):
        self.client = client
    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=protocol_version)
    async def new_session(self, **_):
        return NewSessionResponse(session_id=uuid4().hex)
    async def prompt(self, prompt, session_id, **_):
        for block in prompt:
            update = update_agent_message(text_block(block.text))
            await self.client.session_update(session_id=session_id, update=update)
        return PromptResponse(stop_reason="end_turn")

asyncio.run(run_agent(Echo()))
"""
LOOP = """
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from prompt_toolkit import prompt

agent = create_agent(FakeListChatModel(responses=["hello"]), [])
while text := prompt("ask>"):
    print(agent.invoke({"messages": text})["messages"][-1].text)
"""


@dataclass
class Taken:
    """What a process has taken until it answered, and the memory that it has then."""

    seconds: float
    processor: float
    mebibytes: float = 0.0


@dataclass(frozen=True)
class Contender:
    """A program to start, and how to find out that it answers."""

    name: str
    start: Callable[[Path], Taken]
    taken: list[Taken] = field(default_factory=list)

    @property
    def counted(self) -> list[Taken]:
        """All rounds but the first, which warms up; that one where there is no other."""
        return self.taken[1:] or self.taken


def measure(process: psutil.Popen, begin: float, *, idle: float = 0.0) -> Taken:
    """What it has taken since it began; its memory after ``idle`` seconds, if they are given."""
    seconds, times = time.perf_counter() - begin, process.cpu_times()
    processor = times.user + times.system + times.children_user + times.children_system
    if idle:
        time.sleep(idle)
    family = [process, *process.children(recursive=True)]
    return Taken(seconds, processor, sum(each.memory_info().rss for each in family) / 2**20)


def start_server(command: str, folder: Path, env: Mapping[str, str], idle: float) -> Taken:
    """Until ``/ok`` answers."""
    port = free_port()
    begin = time.perf_counter()
    with Path(os.devnull).open("w") as log:
        process = psutil.Popen(
            [sys.executable, "-m", *command.split(), "--port", str(port)],
            cwd=folder, env=env, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        while time.perf_counter() < begin + SECONDS and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ok"):
                return measure(process, begin, idle=idle)
            time.sleep(0.01)
        raise RuntimeError(f"{command} does not answer")
    finally:
        process.kill()
        process.wait()


def start_ours(folder: Path, idle: float, servers: int = 0) -> Taken:
    """``make dev``, but for make itself."""
    return start_server("modeshift dev", TEMPLATE, prepare(folder, servers), idle)


def start_empty(folder: Path, idle: float) -> Taken:
    """``langgraph dev`` with a graph that does nothing, and as quiet as ours."""
    (folder / "empty.py").write_text(EMPTY_GRAPH)
    config = {"dependencies": ["."], "graphs": {"agent": "./empty.py:graph"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}
    env = {**os.environ, **quiet, "LANGSMITH_TRACING": "false", "LOG_LEVEL": "WARNING"}
    return start_server("langgraph_cli dev --no-browser --no-reload", folder, env, idle)


def prepare(folder: Path, servers: int = 0) -> dict[str, str]:
    """The settings of a user of his own, who has so many MCP servers."""
    (folder / "workspace").mkdir(exist_ok=True)
    env = environment(folder, WORKSPACE=str(folder / "workspace"), MODEL="offline", SANDBOX="auto")
    entry = {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}
    names = [f"server_{number}" for number in range(servers)]
    file = Path(env["CONFIG_FOLDER"]) / "mcp.json"
    file.write_text(json.dumps({"mcpServers": dict.fromkeys(names, entry)}))
    return {**env, "PYTHONPATH": str(TEMPLATE)}


def start_editor(command: list[str], folder: Path) -> Taken:
    """Until ``session/new`` is answered, which is sent at once, as editors do."""
    env = prepare(folder)
    begin = time.perf_counter()
    process = psutil.Popen(
        command, cwd=TEMPLATE, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    params = (
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": str(folder / "workspace"), "mcpServers": []}),
    )
    try:
        for id, (method, given) in enumerate(params):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": given}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
        return measure(process, begin)
    finally:
        process.kill()
        process.wait()


def start_terminal(command: list[str], folder: Path) -> Taken:
    """Until the prompt is there and a key is on the screen."""
    env = {**prepare(folder), "TERM": "xterm"}
    terminal, theirs = pty.openpty()
    begin = time.perf_counter()
    process = psutil.Popen(
        command, cwd=TEMPLATE, env=env, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    try:
        for shown, key in ((b">", b"z"), (b"z", b"")):
            read_until(terminal, shown, begin + SECONDS)
            os.write(terminal, key)
        return measure(process, begin)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(theirs)


def read_until(terminal: int, shown: bytes, end: float) -> None:
    """Read what the program writes, up to ``shown``."""
    seen = b""
    while select.select([terminal], [], [], max(0, end - time.perf_counter()))[0]:
        seen += os.read(terminal, 100_000)
        if shown in seen:
            return
    raise RuntimeError(f"no {shown!r} in {seen!r}")


def list_doors(idle: float) -> dict[str, list[Contender]]:
    """Each table's contenders; the first one is what the others are compared with."""
    python = [sys.executable, "-c"]
    editor = "from modeshift.__main__ import serve_editor; serve_editor()"
    chat = [sys.executable, "-m", "modeshift", "chat"]
    return {
        "server": [
            Contender("langgraph dev, empty", lambda at: start_empty(at, idle)),
            Contender("make dev", lambda at: start_ours(at, idle)),
            Contender("the same, 10 MCP servers", lambda at: start_ours(at, idle, SERVERS)),
        ],
        "editor, session/new": [
            Contender("the SDK's echo agent", lambda at: start_editor([*python, ECHO], at)),
            Contender("modeshift-acp", lambda at: start_editor([*python, editor], at)),
        ],
        "terminal, first key": [
            Contender("prompt(), create_agent", lambda at: start_terminal([*python, LOOP], at)),
            Contender("make chat", lambda at: start_terminal(chat, at)),
        ],
    }


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds; 7 by default")
    parser.add_argument("--idle", type=float, default=3, help="seconds before a server's memory")
    parser.add_argument("--only", default="", help="tables whose names begin so")
    options = parser.parse_args()
    for name, contenders in list_doors(options.idle).items():
        if name.startswith(options.only):
            for _ in range(options.rounds + 1):  # the first round warms up
                for contender in contenders:
                    with tempfile.TemporaryDirectory() as folder:
                        contender.taken.append(contender.start(Path(folder)))
            show(name, contenders)


def show(name: str, contenders: list[Contender]) -> None:
    """Print the medians of the counted rounds, and of the ratios to the first contender's."""
    print(f"\n{name:26}{'s':>7}{'ratio':>7}{'cpu s':>7}{'ratio':>7}{'MiB':>7}{'ratio':>7}")
    peer = contenders[0].counted
    for contender in contenders:
        row = f"  {contender.name:24}"
        for value in ("seconds", "processor", "mebibytes"):
            values = [getattr(taken, value) for taken in contender.counted]
            ratios = [a / getattr(b, value) for a, b in zip(values, peer, strict=True)]
            row += f"{statistics.median(values):>7.2f}{statistics.median(ratios):>7.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
