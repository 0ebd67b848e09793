"""LangGraph's checkpointer and store on Postgres, on the connections of the one ``Database``."""

import asyncio
from typing import Any, cast

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore

from modeshift.modes.errors import StorageError
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import KeptThreads
from modeshift.storage.postgres import MAX_CONNECTIONS, PostgresDatabase

_LOCK = 0x6D6F6466
_SECONDS = 60


class PostgresSaver(KeptThreads, AsyncPostgresSaver):
    """A checkpointer that uses several connections at a time."""


async def build_saver(database: Database) -> PostgresSaver:
    """For this event loop."""
    saver = PostgresSaver(await _open_pool(database))
    saver.database = database
    # The library's own lets one statement through at a time, whatever connections there are.
    saver.lock = cast("asyncio.Lock", asyncio.Semaphore(MAX_CONNECTIONS))
    return saver


async def build_store(database: Database) -> AsyncPostgresStore:
    """For this event loop."""
    return AsyncPostgresStore(await _open_pool(database))


async def _open_pool(database: Database) -> Any:
    """LangGraph makes cursors of its own kind on them."""
    assert isinstance(database, PostgresDatabase)
    return await database.open_pool()


async def migrate(database: Database) -> None:
    """Make or change the tables, one process at a time; raises ``StorageError``."""
    await database.check()
    saver, store = await build_saver(database), await build_store(database)
    async with (await _open_pool(database)).connection() as connection:
        # No transaction, and no statement that waits: CREATE INDEX CONCURRENTLY waits for both.
        for _ in range(_SECONDS * 10):
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
            if (await cursor.fetchone())[0]:
                break
            await asyncio.sleep(0.1)
        else:
            raise StorageError(f"{database.name}: another process has migrated it for {_SECONDS} s")
        try:
            await saver.setup()
            await store.setup()
        finally:
            await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
