"""``Database``: what SQLite and Postgres have in common, and all that the rest may use."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self

from modeshift.modes.errors import StorageError

Row = tuple[Any, ...]
_MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, steps BIGINT NOT NULL)"


class Executor(Protocol):
    """A transaction, or a database, where each statement is a transaction of its own."""

    async def execute(self, statement: str, **values: object) -> list[Row]:
        """The rows of a statement, of ``RETURNING`` too; ``:name`` stands for a value.

        Raises ``StorageError``, and then nothing is changed.
        """


class Database(ABC):
    """Opened at its first use, for any event loop. Statements must suit SQLite and Postgres."""

    clock: str = "NULL"
    """SQL for the seconds of the one clock of all its machines; NULL for a file of one machine."""
    columns: str
    """The statement that gives the names of a table's columns."""

    def __init__(self, name: str) -> None:
        """``name`` is what errors call it, without a password."""
        self.name = name

    @abstractmethod
    async def execute(self, statement: str, **values: object) -> list[Row]:
        """As ``Executor.execute``."""

    async def look(self, statement: str, **values: object) -> list[Row]:
        """As ``execute``, for a ``SELECT`` that an index answers with a few rows.

        It may run in the caller's thread, and does not wait for statements that are under way.
        """
        return await self.execute(statement, **values)

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Executor]:
        """What is executed in it counts whole or not at all; in SQLite nobody else writes then."""

    @abstractmethod
    async def lock_migrations_in(self, transaction: Executor) -> None:
        """Wait until no other process migrates, and keep others off until the transaction ends."""

    @abstractmethod
    async def close(self) -> None:
        """Close what this event loop has opened; opened again at the next use."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    def get_json(self, column: str, key: str) -> str:
        """The expression for a key of the JSON in a column of LangGraph's, as text."""

    @abstractmethod
    async def check(self) -> None:
        """Raises ``StorageError`` where it cannot be reached: at once, with the reason."""

    async def list_columns(self, table: str) -> list[str]:
        """The columns of a table; none where there is no such table."""
        return [name for (name,) in await self.execute(self.columns, table=table)]

    async def migrate(self, name: str, steps: Sequence[str]) -> None:
        """Execute those of the ``steps`` that this database has not seen yet, in their order.

        A step that was released never changes: what is new is a step more. Raises ``StorageError``
        for a database that has seen more steps than there are.
        """
        async with self.transaction() as transaction:
            await self.lock_migrations_in(transaction)
            await transaction.execute(_MIGRATIONS)
            seen = "SELECT steps FROM migrations WHERE name = :name"
            count = sum(number for (number,) in await transaction.execute(seen, name=name))
            if count > len(steps):
                raise StorageError(
                    f"{self.name} was written by a newer modeshift ({name}: {count}, here "
                    f"{len(steps)}); upgrade this one, or use another database"
                )
            for step in steps[count:]:
                await transaction.execute(step)
            await transaction.execute(
                "INSERT INTO migrations (name, steps) VALUES (:name, :steps) "
                "ON CONFLICT (name) DO UPDATE SET steps = excluded.steps",
                name=name,
                steps=len(steps),
            )
