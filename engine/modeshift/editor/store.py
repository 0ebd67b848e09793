"""``Sessions``: the sessions of all editors, in the database that also holds their threads."""

import fcntl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from modeshift.modes.errors import InvalidInputError
from modeshift.storage.database import Database

IN_USE = 1 << 62
"""The byte that each process locks while it has the file open; ``make clean-data`` looks at it."""


@dataclass(frozen=True)
class Record:
    """What is stored of a session beside its thread, which has the same id."""

    id: str
    cwd: str
    title: str | None = None
    updated: str = ""
    """ISO 8601, in UTC."""
    model: str | None = None
    """The model that the user chose; None for the one in the settings."""


_NAMES = [field.name for field in fields(Record)]
_COLUMNS = ", ".join(_NAMES)  # an older table has more
_VALUES = ", ".join(f":{name}" for name in _NAMES)
_STEPS = [f"CREATE TABLE IF NOT EXISTS sessions ({' TEXT, '.join(_NAMES)} TEXT, PRIMARY KEY (id))"]
_STORE = f"""
    INSERT INTO sessions ({_COLUMNS}) VALUES ({_VALUES}) ON CONFLICT (id)
    DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES)}
"""  # noqa: S608  # our names


class Sessions:
    """The table of sessions, and the locks of those that this process works on."""

    def __init__(self, database: Database, locks: BinaryIO) -> None:
        self._database = database
        self._locks = locks
        self._claims = Counter[str]()

    @classmethod
    @asynccontextmanager
    async def open(cls, file: Path, database: Database) -> AsyncIterator["Sessions"]:
        """The sessions in the database; locks are beside ``file``, for this machine's processes."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{file}.lock").open("a+b") as locks:  # noqa: ASYNC230  # once, at the start
            fcntl.lockf(locks, fcntl.LOCK_SH, 1, IN_USE)
            await database.migrate("sessions", _STEPS)
            yield cls(database, locks)

    async def store(self, record: Record) -> Record:
        """Insert or replace a record; returns it with the time."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = replace(record, updated=now)
        await self._database.execute(_STORE, **asdict(record))
        return record

    async def delete(self, id: str) -> None:
        """Delete a session's record, after its thread was deleted."""
        await self._database.execute("DELETE FROM sessions WHERE id = :id", id=id)

    async def find(self, id: str) -> Record | None:
        """The session with this id."""
        query = f"SELECT {_COLUMNS} FROM sessions WHERE id = :id"  # noqa: S608  # our names
        return next((Record(*row) for row in await self._database.execute(query, id=id)), None)

    async def list_all(self, cwd: str | None) -> list[Record]:
        """The sessions of a folder, or of all, latest first."""
        query = f"SELECT {_COLUMNS} FROM sessions ORDER BY updated DESC, id"  # noqa: S608  # as above
        records = [Record(*row) for row in await self._database.execute(query)]
        return [record for record in records if cwd in (None, record.cwd)]

    @contextmanager
    def claim(self, id: str) -> Iterator[None]:
        """Keep other processes off the session; claims of this process may overlap.

        Raises ``InvalidInputError`` while another process has a claim.
        """
        byte = UUID(id).int >> 66  # far beyond the end of the file: nothing is written
        if not self._claims[id]:
            try:
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError as error:
                raise InvalidInputError(
                    "another process is working on this session; close it there, or wait"
                ) from error
        self._claims[id] += 1
        try:
            yield
        finally:
            self._claims[id] -= 1
            if not self._claims[id]:
                del self._claims[id]
                fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, byte)
