"""``WholeWrites``: SQLite checkpoints that a cancelled run does not lock."""

import asyncio
import sqlite3
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override

T = TypeVar("T")


class WholeWrites(AsyncSqliteSaver):
    """A checkpointer that never leaves a transaction open, whether a turn is cancelled or fails.

    A transaction left open would lock the file for every session.
    """

    async def _finish(self, writing: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(self._commit_or_roll_back(writing))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    async def _commit_or_roll_back(self, writing: Coroutine[Any, Any, T]) -> T:
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
        return await self._finish(super().aput(config, checkpoint, metadata, new_versions))

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self._finish(super().aput_writes(config, writes, task_id, task_path))

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        await self._finish(super().adelete_thread(thread_id))

    @override
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.setup()
        await self._finish(self._copy_rows(source_thread_id, target_thread_id))

    async def _copy_rows(self, source: str, target: str) -> None:
        """The library's own does not exist for SQLite."""
        async with self.lock:
            for table in ("checkpoints", "writes"):
                columns = await self.conn.execute_fetchall(f"PRAGMA table_info({table})")
                names = ", ".join(name for _, name, *_ in columns if name != "thread_id")
                await self.conn.execute(
                    f"INSERT INTO {table} (thread_id, {names}) "  # noqa: S608  # the table's names
                    f"SELECT ?, {names} FROM {table} WHERE thread_id = ?",
                    (target, source),
                )
            await self.conn.commit()
