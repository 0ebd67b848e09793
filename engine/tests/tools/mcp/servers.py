"""Servers for tests: real ones, started as the agent starts them."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from modeshift.mcp.managed import McpServerPool, McpServerProcess
from modeshift.tools.processes.sandboxes import Sandbox
from modeshift.tools.server_tools import bind_tools
from modeshift.tools.servers import Server
from modeshift.tools.tool import Tool
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import until
from tests.harness.server import free_port

ANSWER = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "%s"}]}}\n'
TOY = Path(__file__).with_name("toy.py")
RAW = Path(__file__).with_name("raw.py")


def toy(name: str = "toy", **given: Any) -> Server:
    """The server of ``toy.py``, which the official SDK makes."""
    rest: dict[str, Any] = {"origin": "user", "command": sys.executable, "args": (str(TOY),)}
    return Server(name=name, **{**rest, **given})


def raw(behaviour: str, *rest: str, name: str = "raw", **given: Any) -> Server:
    """The server of ``raw.py``, which may do anything."""
    args = ("-S", str(RAW), behaviour, *rest)
    return Server(name=name, **{"origin": "user", "command": sys.executable, "args": args, **given})


@contextmanager
def serving_toy() -> Iterator[int]:
    """The same over HTTP, once it answers; its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, TOY, str(port)], stderr=subprocess.PIPE)
    try:
        assert any(b"running on" in line for line in process.stderr or ())
        yield port
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def managed(
    workspace: Path, *servers: Server, sandbox: Sandbox | None = None
) -> AsyncIterator[tuple[McpServerProcess, ...]]:
    """The servers in a pool of their own, which ends with the block."""
    pool = McpServerPool()
    try:
        yield pool.assign(pool, servers, Workspace(workspace), sandbox)
    finally:
        await pool.end_all()


class Bound(NamedTuple):
    """What ``bind_tools`` gives."""

    tools: list[Tool]
    notices: list[str]


async def start(servers: Sequence[McpServerProcess]) -> Bound:
    """What they offer, once they have been started."""
    for server in servers:
        await server.prepare()
        await until(lambda server=server: server.offer is not None)  # type: ignore[misc]
    return Bound(*bind_tools(servers))


@asynccontextmanager
async def started(
    workspace: Path, *servers: Server, sandbox: Sandbox | None = None
) -> AsyncIterator[tuple[tuple[McpServerProcess, ...], Bound]]:
    """The same once they have been started, and what they offer."""
    async with managed(workspace, *servers, sandbox=sandbox) as processes:
        yield processes, await start(processes)


async def offer(workspace: Path, *servers: Server) -> Bound:
    """The same; they have ended by then."""
    async with started(workspace, *servers) as (_, bound):
        return bound
