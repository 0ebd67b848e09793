"""``Agents`` and ``open_agent``: the threads of the clone's agent, here or on a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient

from modeshift.configuration.databases import open_threads
from modeshift.configuration.loading import AgentCache
from modeshift.configuration.settings import Settings, load_settings
from modeshift.configuration.workspaces import ANYBODY
from modeshift.modes.errors import InvalidInputError
from modeshift.project import GRAPH
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import spell_thread
from modeshift.thread import Thread, explain_errors, find_title
from modeshift.threads.compiled import Agent
from modeshift.threads.journal import Journal

TIMEOUT = httpx.Timeout(connect=5, read=300, write=300, pool=5)  # the SDK's
_FIND_THREAD = "SELECT 1 FROM checkpoints WHERE thread_id = :thread LIMIT 1"
_NEWEST = (
    "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id "
    "ORDER BY max(checkpoint_id) DESC LIMIT :limit"
)


def _describe(title: object, changed: str | None, mode: object, *, waits: bool) -> str:
    when = datetime.fromisoformat(changed).astimezone() if changed else None
    parts = [title or "(no message)", when and f"{when:%d %b %H:%M}", mode]
    return " · ".join(str(part) for part in (*parts, waits and "waits for you") if part)


@dataclass(frozen=True)
class Agents:
    """The agent of the clone in its threads; ``open_agent`` makes one."""

    cache: AgentCache
    database: Database | None = None
    """The database with the threads, in this process."""
    server: RemoteGraph | None = None
    _running: dict[asyncio.Task[None], str] = field(default_factory=dict, init=False)

    def thread(self, id: str | None = None, *, user: str | None = None) -> Thread:
        """The thread, a new one without an ``id``; ``user`` is whose folder a new one is in.

        Raises ``InvalidInputError`` for an id that is no UUID.
        """
        id = spell_thread(id) if id else str(uuid4())
        settings, store = self.cache.settings, self.cache.store
        user = user or next(iter(settings.tokens.values()), ANYBODY)

        async def load() -> Agent:
            enters = self.server is None
            return (await self.cache.of_thread(id, user, store, enters=enters)).agent

        config = RunnableConfig(configurable={"thread_id": id})
        return Thread(config, load, self.server, running=self._running)

    async def find_thread(self, id: str | None) -> Thread:
        """The thread, which must be there; ``last`` is the newest, None a new one.

        Raises ``InvalidInputError``.
        """
        if id == "last":
            if not (newest := await self.list_threads(1)):
                raise InvalidInputError("there is no thread yet; leave THREAD out for a new one")
            id = next(iter(newest))
        thread = self.thread(id)
        is_known = id is None or (await thread.state()).values
        if not is_known and (self.server is None or not await self._adopt(thread)):
            raise InvalidInputError(
                f"there is no thread {thread.id!r}; leave THREAD out for a new one"
            )
        return thread

    async def _adopt(self, thread: Thread) -> bool:
        """Have the server know a thread that a process of this clone began without it."""
        async with self.cache.settings.open_database() as database:
            has_threads = await database.list_columns("checkpoints")
            if not has_threads or not await database.execute(_FIND_THREAD, thread=thread.id):
                return False
        await thread.create()
        return bool((await thread.state()).values)

    async def list_threads(self, limit: int = 20) -> dict[str, str]:
        """The threads that were changed last, each described by its id; raises ``UserError``.

        A description has title, time, mode, and whether the thread waits for an answer.
        """
        if self.server is None:
            rows = await self.database.execute(_NEWEST, limit=limit) if self.database else []
            states = {id: await self.thread(id).state() for (id,) in rows}
            return {
                id: _describe(
                    find_title(state.values), state.created_at, state.values.get("mode"),
                    waits=bool(state.interrupts),
                )
                for id, state in states.items()
            }  # fmt: skip
        client: LangGraphClient = self.server.client  # type: ignore[assignment]  # there is one
        with explain_errors():
            threads = await client.threads.search(
                limit=limit, sort_by="updated_at", sort_order="desc",
                select=["thread_id", "metadata", "status", "updated_at"],
                extract={"mode": "values.mode"},
            )  # fmt: skip
        return {
            each["thread_id"]: _describe(
                (each["metadata"] or {}).get("title"), str(each["updated_at"]),
                (each.get("extracted") or {}).get("mode"), waits=each["status"] == "interrupted",
            )
            for each in threads
        }  # fmt: skip


@asynccontextmanager
async def open_agent(
    settings: Settings | None = None, *, address: str | None = None, file: Path | None = None
) -> AsyncIterator[Agents]:
    """The agent with the ``settings``, the clone's ``.env`` unless given.

    At ``address`` on a server, which the first of its tokens opens; else in this process, with the
    threads that a server of the clone has, too, unless they are in another SQLite ``file``. MCP
    servers that were started here end with it. Raises ``UserError``.
    """
    if settings is None:
        settings = await asyncio.to_thread(load_settings)
    if address is not None:
        token = next(iter(settings.tokens), None)
        headers = {"Authorization": f"Bearer {token}"} if token else None
        # The SDK's own client sends LangSmith's key, and asks a dead server for eight seconds.
        http = httpx.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT)
        async with LangGraphClient(http) as client:
            yield Agents(AgentCache(settings), server=RemoteGraph(GRAPH, client=client))
        return
    file = file or settings.checkpoints
    async with open_threads(settings, file) as (database, saver, store):
        cache = AgentCache(settings, saver, store, Journal(database, file))
        try:
            yield Agents(cache, database)
        finally:
            await cache.end_servers()
