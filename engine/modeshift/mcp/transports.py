"""``open_stdio`` and ``open_http``: connections to MCP servers, with answers of bounded size.

The SDK follows no redirect to another host, so headers go nowhere else.
"""

import asyncio
import logging
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from typing_extensions import override

from modeshift.modes.plain_text import to_one_line
from modeshift.tools.processes.process import Program, build_environment, start_program
from modeshift.tools.processes.sandboxes import Sandbox, SandboxService
from modeshift.tools.servers import Server
from modeshift.tools.workspace.workspace import Workspace

log = logging.getLogger("modeshift")
MAX_BYTES = 16_000_000
"""The largest answer, as it is sent."""
MAX_UNASKED = 10_000
"""How many messages that answer nothing, and other lines, may come between two requests."""
_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.")
"""Escapes in JSON: a character in two halves, one half, any other character."""


def mend_text(line: bytes) -> bytes:
    """JSON in which bytes and halves that are no character have become U+FFFD."""
    text = line.decode("utf-8", "replace")
    return _ESCAPES.sub(lambda match: "\ufffd" if len(match[0]) == 6 else match[0], text).encode()


class Failure:
    """Why a connection has failed, set once by the transport that notices it."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.reason = ""

    def report(self, reason: str) -> None:
        """Set the reason, unless there is one."""
        self.reason = self.reason or reason
        self.happened.set()


SHOWN_BYTES = 2000
SECONDS_TO_END = 1
SECONDS_FOR_LAST_WORDS = 0.5
Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


# The kernel ends it with the thread that has started it, which lasts as long as the agent.
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def build_program(server: Server, workspace: Workspace, sandbox: Sandbox | None) -> Program:
    """What to start, in the sandbox if there is one. Blocks; raises ``OSError``."""
    assert server.command is not None
    command = [server.command, *server.args]
    # ``npx`` and ``python -m`` run what they find where they start: in a workspace that nobody has
    # trusted its own code, with the secrets of the user's entry.
    default = workspace.root if server.origin == "workspace" else "/"
    folder = Path(server.cwd or default)
    if sandbox is not None:
        service = SandboxService(tuple(command), folder, server.env, server.network, server.writes)
        return sandbox.build_program(workspace, service)
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
    return Program(command, {**build_environment(), **server.env}, str(folder))


@asynccontextmanager
async def open_stdio(program: Program, failure: Failure) -> AsyncIterator[Streams]:
    """Start the program and talk to it; it is ended with the block.

    ``failure`` gets why it ended by itself. Raises ``OSError`` if it cannot be started.
    """
    try:
        process = await start_program(
            program, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MAX_BYTES // 2
        )
    finally:
        program.close()
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    pipes = _Pipes(process, failure, program.lacks)
    tasks = [
        asyncio.create_task(pipes.read(to_us)),
        asyncio.create_task(pipes.write(from_us)),
        pipes.reading_errors,
    ]
    try:
        yield incoming, outgoing
    finally:
        for stream in (to_us, incoming, outgoing, from_us):
            stream.close()
        ending = asyncio.ensure_future(_end(process, tasks))
        while not ending.done():  # also if the agent is in a hurry
            with suppress(asyncio.CancelledError):
                await asyncio.shield(ending)


class _Pipes:
    def __init__(self, process: Process, failure: Failure, lacks: str) -> None:
        self._process = process
        self._lacks = f"; the sandbox hides {lacks} from it" if lacks else ""
        self._failure = failure
        self._unasked = 0
        """How many messages and lines have come since our last request."""
        self._errors = b""
        self.reading_errors = asyncio.create_task(self._read_errors())

    async def read(self, to_us: Incoming) -> None:
        """Read its output to the end, or until there is more than anybody could need."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while line := await self._read_line():
                self._unasked += 1
                if self._unasked > MAX_UNASKED:
                    self._failure.report(f"it sent more than {MAX_UNASKED} messages unasked")
                    break
                try:
                    message = jsonrpc_message_adapter.validate_json(mend_text(line), by_name=False)
                except ValueError:
                    continue  # many print a greeting
                await to_us.send(SessionMessage(message))
        await asyncio.wait({self.reading_errors}, timeout=SECONDS_FOR_LAST_WORDS)
        errors = to_one_line(self._errors.decode("utf-8", "replace").strip()[-300:])
        said = f": {errors}" if errors else ""
        self._failure.report(f"its process ended{said}{self._lacks}")
        to_us.close()

    async def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readline()
        except ValueError:
            self._failure.report(f"it sent a message of more than {MAX_BYTES // 2} bytes")
            return b""

    async def write(self, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages until the session closes the stream, or the process its input."""
        assert self._process.stdin is not None
        with suppress(OSError, anyio.ClosedResourceError):
            async for sent in from_us:
                if isinstance(sent.message, JSONRPCRequest):
                    self._unasked = 0
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(f"{text}\n".encode())
                await self._process.stdin.drain()

    async def _read_errors(self) -> None:
        """Keep the end of what it prints to stderr."""
        assert self._process.stderr is not None
        while block := await self._process.stderr.read(65536):
            self._errors = (self._errors + block)[-SHOWN_BYTES:]


async def _end(process: Process, tasks: list["asyncio.Task[None]"]) -> None:
    """Close its input, which asks it to end; then kill it, with its process group."""
    assert process.stdin is not None
    process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        await _wait_for_end(process)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    await _wait_for_end(process)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    # There is no public way to close pipes that nobody has read to their end: cpython#100055.
    process._transport.close()  # type: ignore[attr-defined]


async def _wait_for_end(process: Process) -> None:
    """Wait a moment. ``process.wait()`` would also wait for every process that has its pipes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_END):
            while process.returncode is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


CONNECT_SECONDS = 30
IDLE_SECONDS = 300
"""After which an open answer that says nothing is closed; calls have their own limit."""
SECONDS_TO_LISTEN = 1
"""At least so long a pause between streams of messages: a server may ask for none."""


@asynccontextmanager
async def open_http(server: Server, failure: Failure) -> AsyncIterator[Any]:
    """Streams of messages to and from the server's address."""
    url = server.url
    assert url is not None
    sent = {**server.headers, "Accept-Encoding": "identity"}  # a few bytes could be gigabytes

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("it sent a compressed answer, which nobody asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, failure)

    async def slow_down(request: httpx2.Request) -> None:
        if request.method == "GET":
            await asyncio.sleep(SECONDS_TO_LISTEN)

    def build_client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=sent,
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(server.timeout, IDLE_SECONDS)),
            event_hooks={"request": [slow_down], "response": [bound]},
        )

    async with (
        await asyncio.to_thread(build_client) as client,  # it reads certificates
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams


@dataclass(frozen=True)
class _Bounded(httpx2.AsyncByteStream):
    stream: httpx2.AsyncByteStream
    failure: Failure

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, rest = MAX_BYTES, b""
        async for block in self.stream:
            left -= len(block)
            if left < 0:
                self.failure.report(f"it sent an answer of more than {MAX_BYTES} bytes")
                raise httpx2.ReadError(self.failure.reason)
            lines, end, rest = (rest + block).rpartition(b"\n")
            yield mend_text(lines + end)
        yield mend_text(rest)

    @override
    async def aclose(self) -> None:
        await self.stream.aclose()
