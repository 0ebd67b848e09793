"""``SqliteDatabase``: a database in a file, whose connections can be used in any event loop."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal, TypeVar
from urllib.parse import quote_from_bytes
from weakref import finalize

from typing_extensions import override

from modeshift.modes.errors import StorageError
from modeshift.storage.database import Database, Executor, Row

T = TypeVar("T")
# As it is before LangGraph's dev server replaces it by one that refuses to run in an event loop:
# the server imports this module, with the graph, before it does so.
_execute = sqlite3.Connection.execute


class _Connection:
    """One connection, whose statements run one after the other in its own thread."""

    def __init__(self, file: Path, timeout: float, synchronous: str) -> None:
        self._file = file
        self._timeout = timeout
        self._synchronous = synchronous
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._sqlite: sqlite3.Connection | None = None

    async def execute(self, statement: str, **values: object) -> list[Row]:
        return await self.run(lambda opened: opened.execute(statement, values).fetchall())

    async def end(self, statement: str) -> None:
        """End the transaction if there is one."""
        await self.run(lambda opened: opened.in_transaction and opened.execute(statement))

    async def close(self) -> None:
        await self._run(self._close)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def use() -> T:
            if self._sqlite is None:
                self._sqlite = self._open()
            return work(self._sqlite)

        return await self._run(use)

    async def _run(self, work: Callable[[], T]) -> T:
        """The result of ``work``; a caller that is cancelled still waits for its end."""
        done = asyncio.wrap_future(self._thread.submit(work))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait({done})
            raise
        except sqlite3.Error as error:
            raise StorageError(f"{self._file} cannot be used now: {error}") from error

    def _close(self) -> None:
        if self._sqlite is not None:
            self._sqlite.close()
            self._sqlite = None

    def _open(self) -> sqlite3.Connection:
        opened = sqlite3.connect(
            self._file, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        finalize(self, opened.close)  # from Python 3.13 on it is a warning to leave it open
        self._use_wal(opened)
        opened.execute(f"PRAGMA synchronous = {self._synchronous}")
        return opened

    def _use_wal(self, opened: sqlite3.Connection) -> None:
        """Try again: for a new file SQLite does not wait for other processes that do the same."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                opened.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return


class _Reader:
    """A connection that only reads, in its caller's thread: in WAL mode it waits for nobody.

    To hand a look of 20 µs to another thread costs ten times as much, more while others work.
    """

    def __init__(self, file: Path) -> None:
        # A relative path stays one: it is looked up when it is opened, as the writer's is.
        self._address = f"file:{quote_from_bytes(bytes(file))}?mode=ro"
        self._sqlite: sqlite3.Connection | None = None
        self._lock = Lock()

    def look(self, statement: str, values: dict[str, object]) -> list[Row] | None:
        """The rows; None where it would have to wait, or fails: then the writer is asked."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._sqlite is None:
                self._sqlite = sqlite3.connect(
                    self._address, timeout=0, uri=True, isolation_level=None,
                    check_same_thread=False,
                )  # fmt: skip
                finalize(self, self._sqlite.close)
            return list(_execute(self._sqlite, statement, values))
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            if self._sqlite is not None:
                self._sqlite.close()
                self._sqlite = None


class SqliteDatabase(Database):
    """A file in WAL mode. ``normal`` outlives a killed process, ``full`` a power cut too."""

    columns = "SELECT name FROM pragma_table_info(:table)"

    def __init__(
        self, file: Path, timeout: float = 30, synchronous: Literal["normal", "full"] = "normal"
    ) -> None:
        super().__init__(str(file))
        self.file = file
        self.synchronous = synchronous
        self._make: Callable[[], _Connection] = partial(_Connection, file, timeout, synchronous)
        self._alone = self._make()
        """The connection for single statements, which wait here for each other, and for no lock."""
        self._beside = self._make()
        """The connection for checkpoints, so that reading a long one delays no statement."""
        self._reader = _Reader(file)
        self._idle: list[_Connection] = []
        self._lock = Lock()

    @override
    async def execute(self, statement: str, **values: object) -> list[Row]:
        return await self._alone.execute(statement, **values)

    @override
    async def look(self, statement: str, **values: object) -> list[Row]:
        rows = self._reader.look(statement, values)
        return await self.execute(statement, **values) if rows is None else rows

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work``, on the connection for checkpoints, one after the other."""
        return await self._beside.run(work)

    @override
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        with self._lock:
            connection = self._idle.pop() if self._idle else self._make()
        try:
            await connection.execute("BEGIN IMMEDIATE")
            yield connection
            await connection.end("COMMIT")
        finally:
            await connection.end("ROLLBACK")
            with self._lock:
                self._idle.append(connection)

    @override
    async def check(self) -> None:
        # What is open stays open though its file is gone.
        if not await asyncio.to_thread(self.file.exists):
            raise StorageError(f"{self.file} is gone")

    @override
    async def lock_migrations_in(self, transaction: Executor) -> None:
        """Do nothing: each transaction is the only writer anyway."""

    @override
    def get_json(self, column: str, key: str) -> str:
        return f"json_extract(CAST({column} AS TEXT), '$.{key}')"

    @override
    async def close(self) -> None:
        with self._lock:
            connections, self._idle = [self._alone, self._beside, *self._idle], []
            self._alone, self._beside = self._make(), self._make()
        self._reader.close()
        for connection in connections:
            await connection.close()


class MemoryDatabase(SqliteDatabase):
    """In memory, on one connection: what a transaction has done is seen before its end."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))
        self._turn = Lock()

    @override
    async def look(self, statement: str, **values: object) -> list[Row]:
        return await self.execute(statement, **values)

    @override
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  # for any event loop
            await asyncio.sleep(0.001)
        try:
            await self._alone.execute("BEGIN")
            yield self._alone
            await self._alone.end("COMMIT")
        finally:
            await self._alone.end("ROLLBACK")
            self._turn.release()
