"""LangGraph's checkpointer and store on Postgres, on the connections of the one ``Database``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore
from typing_extensions import override

from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import HOLD, RELIEVED, KeptThreads, rename_keys
from modeshift.storage.postgres import MAX_CONNECTIONS, PostgresDatabase
from modeshift.workarounds.langgraph import make_ids_after

_Write = TypeVar("_Write", bound=Callable[..., Any])
_LOCK = 0x6D6F6466
_SECONDS = 60
_CHECK_HOLD = "SELECT 1 FROM holders WHERE thread_id = %s AND hold = %s FOR SHARE"
_hold = ContextVar[tuple[str, str] | None]("hold", default=None)
"""The thread and hold of what is being stored."""


def _fenced(write: _Write) -> _Write:
    """The method, with the hold of the run whose ``config`` it is given."""

    @wraps(write)
    async def fenced(saver: Any, config: RunnableConfig, *args: Any, **named: Any) -> Any:
        here = config["configurable"]
        token = _hold.set((here["thread_id"], here[HOLD]) if HOLD in here else None)
        try:
            return await write(saver, config, *args, **named)
        finally:
            _hold.reset(token)

    return cast("_Write", fenced)


class PostgresSaver(KeptThreads, AsyncPostgresSaver):
    """Uses several connections at once; stores nothing for a run whose hold has ended."""

    database: PostgresDatabase
    aput = _fenced(AsyncPostgresSaver.aput)
    aput_writes = _fenced(AsyncPostgresSaver.aput_writes)

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return make_ids_after(rename_keys(await super().aget_tuple(config)))

    @override
    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        hold = _hold.get()
        with self.database.named_errors():
            if hold is None:
                async with super()._cursor(pipeline=pipeline) as cursor:
                    yield cursor
                return
            async with super()._cursor() as cursor, cursor.connection.transaction():
                yield cursor
                await cursor.execute(_CHECK_HOLD, hold)  # a takeover waits for the commit
                if await cursor.fetchone() is None:
                    raise InvalidInputError(RELIEVED)


async def build_saver(database: Database) -> PostgresSaver:
    """The checkpointer for this event loop."""
    assert isinstance(database, PostgresDatabase)
    saver = PostgresSaver(await database.open_pool())  # type: ignore[arg-type]  # its own cursors
    saver.database = database
    # The library's own lets one statement through at a time, whatever connections there are.
    saver.lock = cast("asyncio.Lock", asyncio.Semaphore(MAX_CONNECTIONS))
    return saver


async def build_store(database: Database) -> AsyncPostgresStore:
    """The store for this event loop."""
    assert isinstance(database, PostgresDatabase)
    return AsyncPostgresStore(await database.open_pool())  # type: ignore[arg-type]  # as above


@asynccontextmanager
async def migrating(database: Database) -> AsyncIterator[None]:
    """Keep off other processes that migrate during the block; raises ``StorageError``."""
    assert isinstance(database, PostgresDatabase)
    async with (await database.open_pool()).connection() as connection:
        # No transaction, and no statement that waits: CREATE INDEX CONCURRENTLY waits for both.
        for _ in range(_SECONDS * 10):
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
            if await cursor.fetchone() == (True,):
                break
            await asyncio.sleep(0.1)
        else:
            raise StorageError(f"{database.name}: another process has migrated it for {_SECONDS} s")
        try:
            yield
        finally:
            await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
