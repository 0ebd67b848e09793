"""``McpServerProcess``: an MCP server that is started when a mode needs it; all are in a pool."""

import asyncio
import atexit
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_data import JsonObject
from modeshift.tools.processes.sandboxes import Sandbox
from modeshift.tools.server_tools import Offer
from modeshift.tools.servers import Server, ToolDescription, describe_changes
from modeshift.tools.workspace.workspace import Workspace

if TYPE_CHECKING:
    from modeshift.mcp.session import McpSession

T = TypeVar("T")
SECONDS_TO_END = 5


class LoopThread:
    """An event loop in a thread, started at first use; a daemon, so the process can always end."""

    def __init__(self, end: Callable[[], Coroutine[object, None, None]]) -> None:
        """``end`` runs in the thread when the process exits."""
        self._end = end
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    async def run(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine in the thread and wait for it here; a cancellation is passed on."""
        loop = self._loop
        if loop is None:
            loop = await asyncio.to_thread(self._start)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def submit(self, work: Coroutine[object, None, None]) -> None:
        """Run a coroutine in the thread if that runs, without waiting."""
        if self._loop is None:
            work.close()
        else:
            asyncio.run_coroutine_threadsafe(work, self._loop)

    async def end(self) -> None:
        """Do what is done at the end now; a later ``run`` starts the thread again."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is not None and thread is not None:
            atexit.unregister(self._finish)
            await asyncio.to_thread(self._finish, loop)
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join, SECONDS_TO_END)

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import_module("modeshift.mcp.session")  # with the SDK, which takes a while
                loop = asyncio.new_event_loop()
                self._thread = Thread(target=_serve, args=(loop,), name="mcp", daemon=True)
                self._thread.start()
                atexit.register(self._finish, loop)
                self._loop = loop
            return self._loop

    def _finish(self, loop: asyncio.AbstractEventLoop) -> None:
        ending = asyncio.run_coroutine_threadsafe(self._end(), loop)
        with suppress(TimeoutError):
            ending.result(SECONDS_TO_END)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


log = logging.getLogger("modeshift")
MAX_FAILURES = 3
"""After so many failures with no successful call between, a server is not started again."""
SECONDS_TO_START = 10
"""How long conversations wait for its start; after that they get its tools once it is ready."""
RETRY_SECONDS = 30
"""After which a server that failed to start is tried again, in the background."""


@dataclass(eq=False)
class McpServerProcess:
    """A server in a workspace. All but ``offer`` runs in the thread's event loop."""

    server: Server
    workspace: Workspace
    sandbox: Sandbox | None
    thread: LoopThread
    offer: Offer | None = None
    """None until it has been started once; any thread may read it."""
    _session: "McpSession | None" = None
    _running: asyncio.Task[None] | None = None
    _started: asyncio.Future[None] | None = None
    _failures: int = 0
    _retry_at: float = 0.0
    _wait_until: float = 0.0
    _is_closed: bool = False
    _first_tools: tuple[ToolDescription, ...] | None = None

    async def call(self, tool: ToolDescription, args: Mapping[str, object]) -> list[JsonObject]:
        """Call a tool; may be called in any event loop. Raises ``ToolFailedError``."""
        return await self.thread.run(self._call(tool, args))

    async def _call(self, tool: ToolDescription, args: Mapping[str, object]) -> list[JsonObject]:
        name = self.server.name
        if self._is_closed:
            raise ToolFailedError(
                f"the MCP server {name!r} is no longer configured as it was; go on without it"
            )
        if self._running is not None and self._session is not None and self._session.is_lost:
            await asyncio.wait({self._running})  # it is about to end
        try:
            await asyncio.shield(self._start())
        except ToolFailedError as error:
            raise ToolFailedError(f"the MCP server {name!r} cannot be used: {error}") from error
        session = self._session
        assert session is not None
        await self._refresh()
        if session.is_lost:
            raise ToolFailedError(f"the MCP server {name!r} has failed; it was not called")
        # It may have been started again since the model was told of the tool.
        if tool not in session.tools:
            raise ToolFailedError(
                f"the MCP server {name!r} describes {tool.name!r} in another way now; "
                "it was not called"
            )
        content = await session.call(tool.name, args)
        self._failures = 0
        return content

    async def prepare(self) -> None:
        """Start it if it should run, and wait a bounded time for that, in any event loop."""
        await self.thread.run(self._prepare())

    async def _prepare(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._running is None and now >= self._retry_at and not self._is_closed:
            self._start()
            self._wait_until = now + SECONDS_TO_START if self.offer is None else 0
        if self._started is not None and now < self._wait_until:
            await asyncio.wait({self._started}, timeout=self._wait_until - now)
        await self._refresh()

    async def _refresh(self) -> None:
        """List its tools again if it has said that they have changed."""
        if (session := self._session) is not None:
            await session.refresh()
            if not session.is_lost:
                self._set_offer(session.tools)

    def _set_offer(self, tools: tuple[ToolDescription, ...]) -> None:
        self._first_tools = tools if self._first_tools is None else self._first_tools
        self.offer = Offer(tools, change=describe_changes(self._first_tools, tools))

    async def close(self) -> None:
        """End it for good."""
        self._is_closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    def _start(self) -> "asyncio.Future[None]":
        """A future that is done once it can be called, or has failed to start."""
        if self._running is None:
            self._started = asyncio.get_running_loop().create_future()
            self._started.add_done_callback(lambda future: future.cancelled() or future.exception())
            if self._failures >= MAX_FAILURES:
                assert self.offer is not None  # it says why
                self._started.set_exception(ToolFailedError(self.offer.problem))
                return self._started
            self._running = asyncio.create_task(self._run(self._started))
        assert self._started is not None
        return self._started

    async def _run(self, started: "asyncio.Future[None]") -> None:
        """Start it and run it to its end, in one task, as the SDK demands."""
        from modeshift.mcp.session import open_session  # noqa: PLC0415  # it imports the SDK

        reason = ""
        try:
            async with open_session(self.server, self.workspace, self.sandbox) as session:
                self._session = session
                self._set_offer(session.tools)
                started.set_result(None)
                reason = await session.wait_until_lost()
        except Exception as error:  # noqa: BLE001  # it costs its tools, nothing else
            reason = reason or (str(error) if isinstance(error, ToolFailedError) else repr(error))
        finally:
            self._session = self._running = None
            if not started.done() and not reason:
                started.cancel()
        self._fail(reason, started)

    def _fail(self, text: str, started: "asyncio.Future[None]") -> None:
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + RETRY_SECONDS * 2**self._failures
        if self._failures >= MAX_FAILURES:
            text += f"; it failed {self._failures} times in a row and is left alone"
        tools = self.offer.tools if self.offer is not None else ()
        self.offer = Offer(tools, text)
        log.warning("MCP server %r: %s", self.server.name, text)
        if not started.done():
            started.set_exception(ToolFailedError(text))


class McpServerPool:
    """All MCP servers of a process; for any thread and event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._servers: dict[str, McpServerProcess] = {}
        self._users: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
        self._thread = LoopThread(self._end_all)

    def assign(
        self, user: object, servers: Iterable[Server], workspace: Workspace, sandbox: Sandbox | None
    ) -> tuple[McpServerProcess, ...]:
        """The servers as ``user`` has them now, none started yet; ends those that no user has."""
        with self._lock:
            place = [str(workspace.root), repr(sandbox)]
            mine = {json.dumps([asdict(each), *place], sort_keys=True): each for each in servers}
            self._users[user] = set(mine)
            for key, server in mine.items():
                if key not in self._servers:
                    self._servers[key] = McpServerProcess(server, workspace, sandbox, self._thread)
            used = set().union(*self._users.values())
            for key in self._servers.keys() - used:
                self._thread.submit(self._servers.pop(key).close())
            return tuple(self._servers[key] for key in mine)

    async def list_tools(
        self, server: Server, workspace: Workspace, sandbox: Sandbox | None = None
    ) -> list[ToolDescription]:
        """Start the server as a mode would, list its tools, end it; for a person who asks.

        Without ``sandbox`` it has all rights of the user. Raises ``ToolFailedError`` with a
        sentence for a person where it cannot be started or does not answer in time.
        """
        from modeshift.mcp.session import open_session  # noqa: PLC0415  # it imports the SDK

        async with open_session(server, workspace, sandbox) as session:
            return list(session.tools)

    async def end_all(self) -> None:
        """End all of them, and their thread."""
        await self._thread.end()

    async def _end_all(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))
