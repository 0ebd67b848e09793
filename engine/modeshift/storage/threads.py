"""LangGraph's checkpointer and store, with our own rules on top."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import datetime
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, validate_op_namespace
from langgraph.store.sqlite import SqliteStore
from typing_extensions import override

from modeshift.modes.errors import StorageError
from modeshift.modes.plain_data import JsonObject
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import AUDIT_ENDS, DELETED, NAMESPACE, KeptThreads, rename_keys
from modeshift.storage.sqlite import SqliteDatabase
from modeshift.workarounds.langgraph import make_ids_after

T = TypeVar("T")
_BESIDE = ("checkpoint_migrations", "store_migrations", "migrations", "sessions", AUDIT_ENDS)
"""The other tables."""
_USERS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND pid != pg_backend_pid()
"""
_FIND = """
    SELECT key, value, created_at, updated_at FROM store
    WHERE prefix = :prefix AND key IN ({keys})
"""
_TAKE_OVER = f"""
    INSERT OR IGNORE INTO store (prefix, key, value)
        SELECT '{NAMESPACE}.' || thread_id, name,
            json_object('value', json(value), 'id', CAST(revision AS TEXT)) FROM host_settings
"""  # noqa: S608  # our own name
"""From where an older version kept what the host set."""


@contextmanager
def _begin(connection: sqlite3.Connection, *, writes: bool) -> Iterator[sqlite3.Cursor]:
    """Whole or not at all, which the library's is not: it commits what has come before an error."""
    with connection, closing(connection.cursor()) as cursor:
        if writes:
            cursor.execute("BEGIN IMMEDIATE")
        yield cursor


class WholeWrites(KeptThreads, SqliteSaver):
    """A checkpointer whose reads and writes each run at once in the database's thread.

    A transaction left open would lock the file for every session: each has ended when the method
    does, whether a turn is cancelled or fails.
    """

    database: SqliteDatabase

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(cast("sqlite3.Connection", None))  # ``_run`` has one
        self.database = database
        self.is_setup = True

    async def _run(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        def use(connection: sqlite3.Connection) -> T:
            self.conn = connection
            return work(*args, **named)

        return await self.database.run(use)

    @override
    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        with _begin(self.conn, writes=transaction) as cursor:
            yield cursor

    @override
    def get_next_version(self, current: str | None, channel: None) -> str:
        """A number of 8 digits, in the place of the library's 50 characters, which sort before it.

        Each checkpoint names the version of every channel; here, none is looked for by it.
        """
        return f"{int((current or '0').partition('.')[0]) + 1:08}"

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return make_ids_after(rename_keys(await self._run(self.get_tuple, config)))

    @override
    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for saved in await self._run(lambda: [*self.list(config, **options)]):
            yield saved

    @override
    async def aput(self, *args: Any, **named: Any) -> RunnableConfig:
        return await self._run(self.put, *args, **named)

    @override
    async def aput_writes(self, *args: Any, **named: Any) -> None:
        await self._run(self.put_writes, *args, **named)

    @override
    async def aget_delta_channel_history(self, **asked: Any) -> Mapping[str, DeltaChannelHistory]:
        return await self._run(self.get_delta_channel_history, **asked)


class _Batch(SqliteStore):
    def __init__(self, opened: sqlite3.Connection, *, writes: bool) -> None:
        super().__init__(opened)
        self.is_setup = True
        self._writes = writes

    @override
    @contextmanager
    def _cursor(self, *, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        with _begin(self.conn, writes=self._writes) as cursor:
            yield cursor


class WholeBatches(BaseStore):
    """A store whose batches each run at once in the database's thread, as ``WholeWrites`` does."""

    supports_ttl = SqliteStore.supports_ttl

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        if all(isinstance(op, GetOp) for op in ops):
            return await self._find(cast("list[GetOp]", ops))
        writes = any(isinstance(op, PutOp) for op in ops)
        return await self._database.run(lambda opened: _Batch(opened, writes=writes).batch(ops))

    async def _find(self, ops: Sequence[GetOp]) -> list[Result]:
        found = dict[tuple[tuple[str, ...], str], Item]()
        for op in ops:
            validate_op_namespace(op)  # ("a.b",) is another namespace than ("a", "b")
        for place in {op.namespace for op in ops}:
            keys = {f"key{n}": op.key for n, op in enumerate(ops) if op.namespace == place}
            find = _FIND.format(keys=", ".join(f":{name}" for name in keys))
            for row in await self._database.look(find, prefix=".".join(place), **keys):
                key, value, *times = row
                created, updated = map(datetime.fromisoformat, times)
                found[place, key] = Item(value=json.loads(value), key=key, namespace=place,
                                         created_at=created, updated_at=updated)  # fmt: skip
        return [found.get((op.namespace, op.key)) for op in ops]

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return asyncio.run(self.abatch(ops))


@asynccontextmanager
async def open_saver(database: Database) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """The checkpointer; ``prepare_tables`` has been called before."""
    if isinstance(database, SqliteDatabase):
        yield WholeWrites(database)
    else:
        from modeshift.storage.postgres_threads import build_saver  # noqa: PLC0415  # an extra's

        yield await build_saver(database)


@asynccontextmanager
async def open_store(database: Database) -> AsyncIterator[BaseStore]:
    """The store, in the database of the checkpoints; ``prepare_tables`` has been called before."""
    if isinstance(database, SqliteDatabase):
        yield WholeBatches(database)
        return
    from modeshift.storage.postgres_threads import build_store  # noqa: PLC0415  # an extra's

    store = await build_store(database)
    try:
        yield store
    finally:
        # LangGraph cancels it when nothing else has it, which Python 3.13 calls a mistake.
        if (task := store._task) is not None:  # no public way, and no issue
            task.cancel()
            await asyncio.wait({task})


async def prepare_tables(database: Database) -> None:
    """Make the tables, or change those of an older version; raises ``StorageError``."""
    if not isinstance(database, SqliteDatabase):
        from modeshift.storage.postgres_threads import migrating  # noqa: PLC0415  # an extra's

        await database.check()
        async with (
            open_saver(database) as saver,
            open_store(database) as store,
            migrating(database),
        ):
            await cast("Any", saver).setup()
            await cast("Any", store).setup()
        return
    await database.run(lambda opened: SqliteSaver(opened).setup())
    await _set_up_store(database)
    if await database.list_columns("host_settings"):
        async with database.transaction() as transaction:
            await transaction.execute(_TAKE_OVER)
            await transaction.execute("DROP TABLE IF EXISTS host_settings")


async def _set_up_store(database: SqliteDatabase) -> None:
    """Make its tables: the library's own way fails where another process does so meanwhile."""
    for is_last in (*[False] * 100, True):
        try:
            await database.run(lambda opened: SqliteStore(opened).setup())
        except StorageError:
            if is_last:
                raise
            await asyncio.sleep(0.05)
        else:
            return


def find_database(saver: BaseCheckpointSaver[str]) -> Database | None:
    """Where a checkpointer stores; None for one that is not ours, such as a platform's."""
    database = getattr(saver, "database", None)  # the dev server hands on a wrapped one
    return database if isinstance(database, Database) else None


async def has_checkpoint(saver: BaseCheckpointSaver[str], thread: str, checkpoint: str) -> bool:
    """Whether a checkpoint is stored; a checkpointer that is not ours has to read all of it."""
    if (database := find_database(saver)) is not None:
        select = "SELECT 1 FROM checkpoints WHERE thread_id = :thread AND checkpoint_id = :id"
        return bool(await database.look(select, thread=thread, id=checkpoint))
    here = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    return await saver.aget_tuple({"configurable": here}) is not None


async def read_newest(database: Database, thread: str, checkpoint: str = "") -> JsonObject:
    """What a thread's checkpoint itself has: not the messages, for which all would be read."""
    configurable = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    async with open_saver(database) as saver:
        saved = await saver.aget_tuple({"configurable": configurable})
    return {} if saved is None else dict(saved.checkpoint["channel_values"])


async def list_questions(database: Database, thread: str | None = None) -> list[str]:
    """The ids of the checkpoints whose question waits for a person, of one thread or of all."""
    writes = "writes" if isinstance(database, SqliteDatabase) else "checkpoint_writes"
    only = "" if thread is None else "AND thread_id = :thread"
    rows = await database.execute(
        f"SELECT DISTINCT thread_id, checkpoint_id FROM {writes} AS asked "  # noqa: S608  # our name
        "WHERE channel = '__interrupt__' AND checkpoint_ns = '' AND checkpoint_id = "
        "(SELECT max(checkpoint_id) FROM checkpoints "
        f"WHERE thread_id = asked.thread_id AND checkpoint_ns = '') {only}",
        thread=thread,
    )
    return [id for _, id in rows]


async def check_database(database: Database) -> None:
    """Raises ``StorageError`` where it cannot be used."""
    async with database:
        await prepare_tables(database)


async def drop_tables(database: Database) -> list[str]:
    """Remove all that is ours in Postgres; raises ``StorageError`` while it is used."""
    done = []
    async with database:
        await database.check()
        async with database.transaction() as transaction:
            if (await transaction.execute(_USERS))[0] != (0,):
                raise StorageError(f"{database.name} is in use; stop the servers and editors first")
            for table in (*DELETED, *_BESIDE):
                if await transaction.execute(database.columns, table=table):
                    await transaction.execute(f"DROP TABLE {table}")
                    done.append(f"{database.name}: removed the table {table}")
    return done or [f"{database.name} has no table of ours; nothing to remove"]
