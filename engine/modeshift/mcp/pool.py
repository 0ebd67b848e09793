"""``ServerPool``: the servers of this process, and who uses them."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict
from threading import Lock
from weakref import WeakKeyDictionary

from modeshift.mcp.loop_thread import LoopThread
from modeshift.mcp.managed import ManagedServer
from modeshift.mcp.server import Server
from modeshift.tools.processes.sandboxes import Sandbox
from modeshift.tools.workspace.workspace import Workspace


class ServerPool:
    """One to a process; for any thread and event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._servers: dict[str, ManagedServer] = {}
        self._users: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
        self._thread = LoopThread(self._end_all)

    def assign(
        self,
        user: object,
        servers: Iterable[Server],
        workspace: Workspace,
        sandbox: Sandbox | None,
    ) -> tuple[ManagedServer, ...]:
        """The servers as ``user`` has configured them now; those that nobody has are ended.

        Nothing is started yet.
        """
        with self._lock:
            mine = {_identify(one, workspace, sandbox): one for one in servers}
            self._users[user] = set(mine)
            for key, server in mine.items():
                if key not in self._servers:
                    self._servers[key] = ManagedServer(server, workspace, sandbox, self._thread)
            used = set().union(*self._users.values())
            for key in self._servers.keys() - used:
                self._thread.submit(self._servers.pop(key).close())
            return tuple(self._servers[key] for key in mine)

    async def end_all(self) -> None:
        """End all of them."""
        await self._thread.run(self._end_all())

    async def _end_all(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def _identify(server: Server, workspace: Workspace, sandbox: Sandbox | None) -> str:
    return json.dumps([asdict(server), str(workspace.root), repr(sandbox)], sort_keys=True)
