"""``KeptThreads``: all that there is of a thread, in whichever tables."""

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, ClassVar
from uuid import UUID
from weakref import WeakSet

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from typing_extensions import override

from modeshift.modes.errors import InvalidInputError
from modeshift.storage.database import Database, Executor

NAMESPACE = "modeshift"
"""The part of the store in which each thread has a namespace for what the host sets."""
COLUMNS = {
    "checkpoints": "thread_id",
    "writes": "thread_id",
    "checkpoint_blobs": "thread_id",
    "checkpoint_writes": "thread_id",
    "store": "prefix",
}
"""What is copied of a thread in either database: by table the column that names it."""
HOLD = "__pregel_modeshift_hold"
"""In a run's ``configurable``: the journal's hold; LangGraph shows no key that begins so."""
RELIEVED = "another process goes on with this thread, or it was deleted: this run ends here"
JOURNAL_STEPS = (
    "CREATE TABLE holders (thread_id TEXT PRIMARY KEY, owner TEXT NOT NULL)",
    "CREATE TABLE inputs (thread_id TEXT, run_id TEXT, PRIMARY KEY (thread_id, run_id))",
    "CREATE TABLE decisions (thread_id TEXT, question TEXT, decisions TEXT NOT NULL, who TEXT, "
    "decided_at TEXT NOT NULL, PRIMARY KEY (thread_id, question))",
    "CREATE TABLE effects (key TEXT PRIMARY KEY, thread_id TEXT NOT NULL, tool TEXT NOT NULL, "
    "owner TEXT NOT NULL, lease DOUBLE PRECISION, state TEXT NOT NULL, result TEXT, "
    "files_before TEXT NOT NULL, files_after TEXT NOT NULL, done TEXT NOT NULL, "
    "started_at TEXT NOT NULL)",
    "CREATE INDEX effects_of_thread ON effects (thread_id)",
    "ALTER TABLE holders ADD COLUMN hold TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE audit (thread_id TEXT, number BIGINT, reference TEXT NOT NULL, entry TEXT NOT "
    "NULL, digest TEXT NOT NULL, PRIMARY KEY (thread_id, number), UNIQUE (thread_id, reference))",
    "CREATE TABLE audit_ends (thread_id TEXT, number BIGINT, digest TEXT, deleted_at TEXT)",
)
AUDIT_ENDS = "audit_ends"
JOURNAL_TABLES = [
    name
    for name in re.findall(r"CREATE TABLE (\w+)", "\n".join(JOURNAL_STEPS))
    if name != AUDIT_ENDS
]
DELETED = COLUMNS | dict.fromkeys(JOURNAL_TABLES, "thread_id")
"""What is deleted with it: the journal's, too."""
_END_AUDIT = f"""
    INSERT INTO {AUDIT_ENDS} SELECT thread_id, number, digest, :now FROM audit
    WHERE thread_id = :id ORDER BY number DESC LIMIT 1
"""  # noqa: S608  # ours


@lru_cache(maxsize=1000)
def get_namespace(thread: str) -> tuple[str, str]:
    """Where the store has what the host sets in the thread; no label has a dot, or is empty."""
    return NAMESPACE, thread.replace("%", "%25").replace(".", "%2E") or "%"


def spell_thread(id: object) -> str:
    """A thread's id in the one spelling in which it is kept; raises ``InvalidInputError``."""
    try:
        return str(UUID(str(id)))
    except ValueError:
        raise InvalidInputError(f"{id!r} is no thread's id, which is a UUID") from None


def rename_keys(saved: CheckpointTuple | None) -> CheckpointTuple | None:
    """The checkpoint, with what an older version called ``plan``; a clone's own key stays."""
    values = {} if saved is None else saved.checkpoint["channel_values"]
    if "phase" in values and "plan" in values and "due_calls" not in values:
        values["due_calls"] = values.pop("plan")
    return saved


class KeptThreads(BaseCheckpointSaver[str]):
    """A checkpointer that deletes and copies all that there is of a thread, in one transaction."""

    database: Database
    beside: ClassVar[WeakSet[Any]] = WeakSet()
    """Whatever else keeps something of threads; its ``forget`` blocks."""

    @property
    def read_history(self) -> Callable[..., object]:
        """LangGraph's method, by a name that a wrapper of the checkpointer hands on."""
        return self.aget_delta_channel_history

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        id = str(thread_id)
        for other in list(self.beside):
            await asyncio.to_thread(other.forget, id)
        async with self.database.transaction() as transaction:
            if await transaction.execute(self.database.columns, table=AUDIT_ENDS):
                now = datetime.now(UTC).isoformat()
                await transaction.execute(_END_AUDIT, id=id, now=now)
            await self._change(
                transaction, DELETED, "DELETE FROM {table} WHERE {column} = :id", id=id
            )

    @override
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        async with self.database.transaction() as transaction:
            await self._change(
                transaction,
                COLUMNS,
                "INSERT INTO {table} ({column}, {names}) SELECT :target, {names} FROM {table} "
                "WHERE {column} = :source",
                target=str(target_thread_id),
                source=str(source_thread_id),
            )

    async def _change(
        self, transaction: Executor, tables: Mapping[str, str], statement: str, **threads: str
    ) -> None:
        """Execute it for each table that there is."""
        for table, column in tables.items():
            rows = await transaction.execute(self.database.columns, table=table)
            names = ", ".join(name for (name,) in rows if name != column)
            if names:
                written = statement.format(table=table, column=column, names=names)
                ids = {
                    name: id if column == "thread_id" else ".".join(get_namespace(id))
                    for name, id in threads.items()
                }
                await transaction.execute(written, **ids)
