"""``StartedCalls``: what the agents of a process share."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

from modeshift.graph.journal import Journal
from modeshift.tools.processes.background import BackgroundCommands

_TABLES = """
    CREATE TABLE IF NOT EXISTS host_settings (
        thread_id TEXT, name TEXT, value TEXT, revision INTEGER, PRIMARY KEY (thread_id, name));
    CREATE INDEX IF NOT EXISTS host_revisions ON host_settings (revision);
"""
_SET = "INSERT OR REPLACE INTO host_settings (value, revision, thread_id, name) VALUES (?, ?, ?, ?)"
_SET_AGAIN = "UPDATE host_settings SET value = ?, revision = ? WHERE thread_id = ? AND name = ?"
_LAST = "SELECT coalesce(max(revision), 0) FROM host_settings"  # a thread's copy has its revision
_NEWS = "SELECT name, value, revision FROM host_settings WHERE thread_id = ? AND revision > ?"
REVISION = "host_revision"
"""The state's key for the newest revision that it has taken in."""


class Mailbox:
    """The settings of all threads, in the SQLite file of the checkpoints."""

    def __init__(self, file: Path | None = None) -> None:
        """Opens the file at its first use; without one nothing can be set."""
        self._file = file
        self._signal = Path(f"{file}.signal")
        """Grows with each setting: to see that there is none takes no query, and so no thread."""
        self._newest = dict[str, tuple[int, int]]()
        """By thread, its newest revision when the signal had this size."""
        self._begun = dict[tuple[str, str], str]()
        """By thread and call, the tools of the calls that go on in this process."""
        self._database: sqlite3.Connection | None = None
        self._lock = Lock()

    async def put(self, thread: str, values: Mapping[str, Any]) -> list[str]:
        """Keep the settings; gives the tools whose calls have begun here and go on, judged before.

        No other call that was judged before begins after this.
        """
        await asyncio.to_thread(self._put, _SET, thread, values)
        return [tool for (other, _), tool in [*self._begun.items()] if other == thread]

    async def put_input(self, thread: str, values: Mapping[str, Any]) -> bool:
        """Keep the rights in a run's input, and replace a mode that there is: it came later.

        False without a file: the state alone has them.
        """
        rights = {key: value for key, value in values.items() if key != "mode"}
        if rights and self._file is not None:
            await asyncio.to_thread(self._put, _SET, thread, rights)
        if "mode" in values and not self._has_none(thread, 0):
            await asyncio.to_thread(self._put, _SET_AGAIN, thread, {"mode": values["mode"]})
        return self._file is not None

    async def find_news(self, thread: str, taken: int) -> dict[str, Any]:
        """What was set after the revision ``taken``, and the newest one; empty if nothing was."""
        if self._has_none(thread, taken):
            return {}
        return await asyncio.to_thread(self._find_news, thread, taken)

    async def begin(self, thread: str, call: str, tool: str, taken: int) -> bool:
        """Record a call as begun; False, and nothing is recorded, if there is news for it."""
        # Recorded first: if ``put`` does not find it, it finds what was put.
        self._begun[thread, call] = tool
        if await self.find_news(thread, taken):
            self.end(thread, call)
            return False
        return True

    def end(self, thread: str, call: str) -> None:
        """Record that a call has ended."""
        self._begun.pop((thread, call), None)

    def _has_none(self, thread: str, taken: int) -> bool:
        """Whether there is certainly no setting after ``taken``."""
        if self._file is None:
            return True
        size, newest = self._newest.get(thread, (-1, 0))
        return size == self._get_signal() and newest <= taken

    def _get_signal(self) -> int:
        try:
            return self._signal.stat().st_size
        except FileNotFoundError:
            return 0

    def _give_signal(self) -> None:
        file = os.open(self._signal, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, b".")
        finally:
            os.close(file)

    def _put(self, statement: str, thread: str, values: Mapping[str, Any]) -> None:
        with self._transaction() as database:
            ((last,),) = database.execute(_LAST)
            last = max(last, self._get_signal())  # a deleted thread's revisions are not used again
            rows = [(json.dumps(value), last + 1, thread, name) for name, value in values.items()]
            database.executemany(statement, rows)
        self._give_signal()

    def _find_news(self, thread: str, taken: int) -> dict[str, Any]:
        signal = self._get_signal()
        with self._transaction("DEFERRED") as database:
            rows = database.execute(_NEWS, (thread, taken)).fetchall()
        revision = max((revision for _, _, revision in rows), default=taken)
        self._newest[thread] = signal, revision
        if not rows:
            return {}
        return {name: json.loads(value) for name, value, _ in rows} | {REVISION: revision}

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._database is None:
                self._database = self._open()
            self._database.execute(f"BEGIN {kind}")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._file is None:
            raise RuntimeError("this agent has no file in which a thread's settings are kept")
        database = sqlite3.connect(
            self._file, timeout=30, isolation_level=None, check_same_thread=False
        )
        finalize(self, database.close)  # from Python 3.13 on it is a warning to leave it open
        database.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last moments, of the checkpoints too; a crash loses nothing.
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_TABLES)
        return database


class StartedCalls:
    """What all agents of a process share: who has begun what, and what the host sets meanwhile."""

    def __init__(self, mailbox: Mailbox | None = None, journal: Journal | None = None) -> None:
        """``mailbox`` is where the host sets a thread's mode while a run goes on."""
        self.mailbox = mailbox or Mailbox()
        self.journal = journal or Journal()
        """Without a database one in memory."""
        self.background = BackgroundCommands()
        """Of the commands that have begun, those that may still run."""
