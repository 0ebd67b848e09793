"""``WholeWrites``: SQLite checkpoints that a cancelled run does not lock."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override

Write = TypeVar("Write", bound=Callable[..., Any])
_TABLES = ("checkpoints", "writes", "host_settings")
"""What there is of a thread: the last is the mailbox's, and goes with the thread."""


def finish(write: Write) -> Write:
    """The method, which ends its transaction though its caller is cancelled, or it fails."""

    async def commit_or_roll_back(saver: Any, *args: Any, **named: Any) -> Any:
        try:
            return await write(saver, *args, **named)
        except sqlite3.Error:
            async with saver.lock:
                await saver.conn.rollback()
            raise

    @wraps(write)
    async def whole(saver: Any, *args: Any, **named: Any) -> Any:
        task = asyncio.create_task(commit_or_roll_back(saver, *args, **named))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    return cast("Write", whole)


class WholeWrites(AsyncSqliteSaver):
    """A checkpointer that never leaves a transaction open, whether a turn is cancelled or fails.

    A transaction left open would lock the file for every session.
    """

    aput = finish(AsyncSqliteSaver.aput)
    aput_writes = finish(AsyncSqliteSaver.aput_writes)

    @override
    @finish
    async def adelete_thread(self, thread_id: str) -> None:
        await self._change("DELETE FROM {table} WHERE thread_id = ?", thread_id)

    @override
    @finish
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The library's own does not exist for SQLite."""
        await self._change(
            "INSERT INTO {table} (thread_id, {names}) SELECT ?, {names} FROM {table} "
            "WHERE thread_id = ?",
            target_thread_id,
            source_thread_id,
        )

    async def _change(self, statement: str, *threads: str) -> None:
        """Execute it for each table that there is."""
        await self.setup()
        async with self.lock:
            for table in _TABLES:
                columns = await self.conn.execute_fetchall(f"PRAGMA table_info({table})")
                names = ", ".join(name for _, name, *_ in columns if name != "thread_id")
                if names:
                    await self.conn.execute(statement.format(table=table, names=names), threads)
            await self.conn.commit()
