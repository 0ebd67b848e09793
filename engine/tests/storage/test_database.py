"""What both databases do, for one set of statements."""

import asyncio
from pathlib import Path

import pytest

from modeshift.modes.errors import StorageError
from modeshift.storage.database import Database
from modeshift.storage.opening import open_database

STEPS = [
    "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT)",
    "CREATE INDEX texts ON notes (text)",
]
INSERT = "INSERT INTO notes (id, text) VALUES (:id, :text) ON CONFLICT DO NOTHING RETURNING id"
SELECT = "SELECT id, text FROM notes ORDER BY id"


async def test_values_rows_and_what_returns(database: Database) -> None:
    await database.migrate("notes", STEPS)
    assert await database.execute(INSERT, id="a", text="100% of it?") == [("a",)]
    assert await database.execute(INSERT, id="a", text="again") == []
    assert await database.execute(SELECT) == [("a", "100% of it?")]
    assert await database.execute("DELETE FROM notes WHERE text LIKE '100%'") == []
    assert await database.execute(SELECT) == []


async def test_a_transaction_is_whole_or_nothing(database: Database) -> None:
    await database.migrate("notes", STEPS)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="a", text="x")
            assert await transaction.execute(SELECT) == [("a", "x")]
            assert await database.execute(SELECT) == []
            raise ZeroDivisionError
    with pytest.raises(StorageError):
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="b", text="x")
            await transaction.execute("INSERT INTO nowhere VALUES (1)")
    assert await database.execute(SELECT) == []


async def test_a_cancelled_transaction_leaves_nothing_open(database: Database) -> None:
    await database.migrate("notes", STEPS)
    has_begun = asyncio.Event()

    async def hang() -> None:
        async with database.transaction() as transaction:
            await transaction.execute(INSERT, id="a", text="x")
            has_begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.execute(INSERT, id="a", text="y") == [("a",)]


async def test_a_step_is_executed_once_whoever_comes(database: Database) -> None:
    await asyncio.gather(*(database.migrate("notes", STEPS[:1]) for _ in range(5)))
    await database.execute(INSERT, id="a", text="x")
    await asyncio.gather(*(database.migrate("notes", STEPS) for _ in range(5)))
    assert await database.execute(SELECT) == [("a", "x")]
    with pytest.raises(StorageError, match=r"written by a newer modeshift \(notes: 2, here 1\)"):
        await database.migrate("notes", STEPS[:1])


async def test_many_transactions_at_once(database: Database) -> None:
    await database.migrate(
        "counts", ["CREATE TABLE counts (n BIGINT)", "INSERT INTO counts VALUES (0)"]
    )

    async def add() -> None:
        async with database.transaction() as transaction:
            await transaction.execute("UPDATE counts SET n = n + 1")
            await transaction.execute("SELECT n FROM counts")

    await asyncio.gather(*(add() for _ in range(40)))
    assert await database.execute("SELECT n FROM counts") == [(40,)]


def test_another_event_loop_uses_it_too(url: str, tmp_path: Path) -> None:
    database = open_database(url, tmp_path / "threads.sqlite")

    async def use() -> None:
        await database.migrate("notes", STEPS)
        await database.execute(INSERT, id="a", text="x")
        await database.close()

    asyncio.run(use())
    asyncio.run(use())


async def test_a_lock_that_is_held_too_long(url: str, tmp_path: Path, database: Database) -> None:
    await database.migrate("notes", STEPS)
    other = open_database(url, tmp_path / "threads.sqlite", timeout=0.2)
    async with database.transaction() as transaction:
        await transaction.execute("INSERT INTO notes VALUES ('a', 'x')")
        with pytest.raises(StorageError, match="cannot be used now"):
            await other.execute("INSERT INTO notes VALUES ('a', 'y')")
    assert await database.execute(SELECT) == [("a", "x")]
    await other.close()


async def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "threads.sqlite").write_text("this is no database, and longer than a header is")
    with pytest.raises(StorageError, match=r"threads\.sqlite cannot be used now: file is not"):
        await open_database("", tmp_path / "threads.sqlite").migrate("notes", STEPS)
