"""``Sessions``: which sessions there are, in the SQLite file that holds their threads too."""

import asyncio
import fcntl
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import UUID, uuid4

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override

from modes.errors import InvalidInputError

T = TypeVar("T")
PAGE = 100
BEFORE_ALL = ("9", "")
"""A time, and an id, behind that of every session: those are listed latest first."""
IN_USE = 1 << 62
"""The byte on which every process that has the file open holds a lock."""


@dataclass
class Record:
    """What is kept of a session beside its thread, which has the same id."""

    id: str
    cwd: str
    title: str | None = None
    updated: str = ""
    """ISO 8601, in UTC."""
    model: str | None = None
    """Chosen by the user; None for the one in the settings."""
    mode: str | None = None
    """Set by the user, and not yet in the thread."""
    approvals: str | None = None
    """As ``mode``."""

    @property
    def wishes(self) -> tuple[str | None, str | None, str | None]:
        """What the user has chosen."""
        return self.mode, self.model, self.approvals

    @classmethod
    def new(cls, cwd: str) -> "Record":
        """A session that begins now."""
        return cls(str(uuid4()), cwd)


_COLUMNS = [field.name for field in fields(Record)]
_TABLE = f"""CREATE TABLE IF NOT EXISTS sessions (
    {" TEXT, ".join(_COLUMNS)} TEXT, PRIMARY KEY (id))"""
_PLACES = ", ".join(f":{name}" for name in _COLUMNS)


class WholeWrites(AsyncSqliteSaver):
    """A checkpointer that leaves no write half done: not a cancelled turn's, nor one that fails.

    One between a statement and its commit would keep the file locked, for every session; one
    that another process's lock has kept waiting too long would fail all that come after it.
    """

    def __init__(self, conn: aiosqlite.Connection, **rest: Any) -> None:
        super().__init__(conn, **rest)
        self._writing = set[asyncio.Task[Any]]()

    async def written(self) -> None:
        """Wait for what is being written."""
        while self._writing:
            await asyncio.wait(self._writing)

    def _whole(self, writing: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        task = asyncio.create_task(self._written_or_not(writing))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return asyncio.shield(task)

    async def _written_or_not(self, writing: Coroutine[Any, Any, T]) -> T:
        try:
            return await writing
        except sqlite3.Error:
            async with self.lock:
                await self.conn.rollback()
            raise

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._whole(super().aput(config, checkpoint, metadata, new_versions))

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self._whole(super().aput_writes(config, writes, task_id, task_path))


class Sessions:
    """The table of sessions, and who works on which."""

    def __init__(self, database: aiosqlite.Connection, claims: BinaryIO) -> None:
        self._database = database
        self._claims = claims
        self._claimed: dict[str, tuple[object, int]] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, file: Path) -> AsyncIterator["Sessions"]:
        """Those in the file, which is made if it is not there."""
        with Path(f"{file}.lock").open("a+b") as claims:  # noqa: ASYNC230  # once, at the start
            fcntl.lockf(claims, fcntl.LOCK_SH, 1, IN_USE)
            # Each statement is whole by itself: one that is cancelled leaves no lock behind.
            async with aiosqlite.connect(file, isolation_level=None) as database:
                await database.execute(_TABLE)
                yield cls(database, claims)

    async def change(self, record: Record, **changes: Any) -> Record:
        """Store the changes of a record, which may be a new one, and no more: gives it.

        Another process may have changed the rest since.
        """
        changed = replace(record, **changes, updated=_now())
        if await self.find(record.id) is None:
            await self._database.execute(
                f"INSERT INTO sessions VALUES ({_PLACES})",  # noqa: S608  # names of fields
                asdict(changed),
            )
            return changed
        assignments = ", ".join(f"{name} = :{name}" for name in (*changes, "updated"))
        await self._database.execute(
            f"UPDATE sessions SET {assignments} WHERE id = :id",  # noqa: S608  # names of fields
            asdict(changed),
        )
        return await self.find(record.id) or changed

    async def find(self, id: str) -> Record | None:
        """The session of this id."""
        found = await self._database.execute_fetchall("SELECT * FROM sessions WHERE id = ?", (id,))
        return next((Record(*row) for row in found), None)

    async def page(self, cwd: str | None, cursor: str | None) -> tuple[list[Record], str | None]:
        """The sessions of a folder, or all, latest first; and where the next page begins.

        Raises ``InvalidInputError`` for a cursor that is none of ours.
        """
        updated, id = BEFORE_ALL if cursor is None else _last(cursor)
        found = await self._database.execute_fetchall(
            "SELECT * FROM sessions WHERE (:cwd IS NULL OR cwd = :cwd) "
            "AND (updated, id) < (:updated, :id) ORDER BY updated DESC, id DESC LIMIT :limit",
            {"cwd": cwd, "limit": PAGE + 1, "updated": updated, "id": id},
        )
        records = [Record(*row) for row in found]
        last = records[PAGE - 1 : PAGE] if len(records) > PAGE else []
        return records[:PAGE], next((f"{one.updated} {one.id}" for one in last), None)

    def is_claimed_by(self, id: str, owner: object) -> bool:
        """Whether the owner is on the session now."""
        return id in self._claimed and self._claimed[id][0] is owner

    @contextmanager
    def claimed(self, id: str, owner: object) -> Iterator[None]:
        """Keeps others off the session, in this process and in others.

        Raises ``InvalidInputError`` if one is on it. Its owner may claim it more than once.
        """
        holder, count = self._claimed.get(id, (owner, 0))
        if holder is not owner:
            raise InvalidInputError("what this session did is still ending; try again")
        place = UUID(id).int >> 66  # a lock on one byte far out, of which nothing is left behind
        try:
            if not count:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            raise InvalidInputError(
                "another process is at work on this session; close it there, or wait"
            ) from error
        self._claimed[id] = owner, count + 1
        try:
            yield
        finally:
            count = self._claimed[id][1] - 1
            self._claimed[id] = owner, count
            if not count:
                del self._claimed[id]
                fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, place)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def is_in_use(file: Path) -> bool:
    """Whether an editor's agent has the sessions in the file open."""
    try:
        with Path(f"{file}.lock").open("r+b") as claims:
            fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, IN_USE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _last(cursor: str) -> tuple[str, str]:
    """The last session of the page before: however the list moves, none is told twice."""
    updated, _, id = cursor.partition(" ")
    try:
        datetime.fromisoformat(updated)
        UUID(id)
    except ValueError:
        told = f"cursor {cursor[:100]!r} is none of this agent's"
        raise InvalidInputError(told) from None
    return updated, id
