"""``PostgresDatabase``: psycopg 3, with a pool of connections for each event loop."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, Error
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout
from typing_extensions import override

from modeshift.modes.errors import ConfigurationError, StorageError
from modeshift.storage.database import Database, Executor, Row

MAX_CONNECTIONS = 4
"""The most connections of one event loop."""
_MIGRATION_LOCK = 0x6D6F6465
_NAME = re.compile(r"(?<!:):([a-z_]+)")
_Pool = AsyncConnectionPool[AsyncConnection[Row]]


def _parse(url: str) -> dict[str, str | int | None]:
    """Raises ``ConfigurationError`` without the URL's text, which has the password."""
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    with suppress(Error):
        parts = conninfo_to_dict(url)
        # libpq takes what follows the first @ for the host, and prints a port that is none.
        is_split_well = authority.count("@") <= 1 and "@" not in path
        if is_split_well and re.fullmatch(r"[\d,]*", str(parts.get("port") or "")):
            return parts
    raise ConfigurationError(
        "DATABASE_URL is no address of a database; give postgresql://user:password@host/name, "
        "with %40 for an @ and %2F for a / in the password"
    )


class _Transaction:
    def __init__(self, connection: AsyncConnection[Row]) -> None:
        self._connection = connection

    async def execute(self, statement: str, **values: object) -> list[Row]:
        written = _NAME.sub(r"%(\1)s", statement.replace("%", "%%")).encode()
        cursor = await self._connection.execute(written, values)
        return [] if cursor.description is None else await cursor.fetchall()


class PostgresDatabase(Database):
    """A database of Postgres; a connection that has died is replaced before it is used."""

    clock = "extract(epoch FROM clock_timestamp())::double precision"
    columns = (
        "SELECT column_name::text FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = :table"
    )

    def __init__(self, url: str, timeout: float = 30) -> None:
        parts = _parse(url)
        host = parts.get("host") or "this machine"
        super().__init__(f"Postgres at {host}/{parts.get('dbname', '')}")
        self._url = url
        self._timeout = timeout
        self._pools = WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool]()

    @override
    async def execute(self, statement: str, **values: object) -> list[Row]:
        with self.named_errors():
            async with (await self.open_pool()).connection() as connection:
                return await _Transaction(connection).execute(statement, **values)

    @override
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        with self.named_errors():
            async with (
                (await self.open_pool()).connection() as connection,
                connection.transaction(),
            ):
                yield _Transaction(connection)

    @override
    async def lock_migrations_in(self, transaction: Executor) -> None:
        await transaction.execute("SELECT pg_advisory_xact_lock(:lock)", lock=_MIGRATION_LOCK)

    @override
    def get_json(self, column: str, key: str) -> str:
        return f"{column} ->> '{key}'"

    @override
    async def close(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Raise errors of the driver in the block as ``StorageError``."""
        try:
            yield
        except (Error, PoolTimeout, PoolClosed) as error:
            reason = " ".join(str(error).split())  # in one line
            raise StorageError(f"{self.name} cannot be used now: {reason}") from error

    @override
    async def check(self) -> None:
        with self.named_errors():
            async with await AsyncConnection.connect(self._url, connect_timeout=5) as connection:
                encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":  # then text is given as bytes
            raise StorageError(
                f"{self.name} has the encoding {encoding}; make a database for it with "
                "CREATE DATABASE name ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
            )

    async def open_pool(self) -> _Pool:
        """The connections of this event loop."""
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            pool = self._pools[loop] = AsyncConnectionPool(
                self._url,
                min_size=1,
                max_size=MAX_CONNECTIONS,
                timeout=self._timeout,
                reconnect_timeout=1,  # then whoever comes tries again; else it waits ever longer
                kwargs={
                    "autocommit": True,
                    # A process that is stopped within a transaction holds others up for half of it.
                    "options": f"-c lock_timeout={int(self._timeout * 1000)} "
                    f"-c idle_in_transaction_session_timeout={int(self._timeout * 500)}",
                    "connect_timeout": max(2, int(self._timeout)),
                },
                check=AsyncConnectionPool.check_connection,
                open=False,
            )
            await pool.open()
        return pool
