"""``Claims``: which run has a thread, in a row of Postgres that only one process can write.

Aegra itself lets any number of runs go on in a thread: two clicks on "approve", in two processes,
ran a call twice. A claim is renewed while its run goes on. When a process dies, its claims expire;
one that cannot renew its claims, or has lost them, ends their runs.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from uuid import uuid4

from aegra_api.core.database import db_manager
from aegra_api.core.migrations import run_migrations
from aegra_api.core.orm import Run, get_session_maker
from aegra_api.models.run_job import RunJob
from aegra_api.services.executor import executor
from aegra_api.services.langgraph_service import get_langgraph_service
from typing_extensions import override

from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.server.answers import BindAnswers, Client
from modeshift.server.checkpointer import CLONE, database
from modeshift.server.thread_modes import OURSELVES
from modeshift.storage.database import Database
from modeshift.storage.postgres_threads import migrating
from modeshift.storage.threads import list_questions, prepare_tables

SECONDS = 15
"""How long a claim lasts that is not renewed, by the clock of Postgres."""
CLAIM = "__modeshift_claim"
"""In a run's ``configurable``: the request that has claimed the thread for it."""
_NOW = "extract(epoch FROM clock_timestamp())"
_STEPS = (
    "CREATE TABLE thread_claims (thread_id TEXT PRIMARY KEY, holder TEXT NOT NULL, "
    "expires DOUBLE PRECISION NOT NULL, is_cancelled BOOLEAN NOT NULL DEFAULT FALSE)",
    "CREATE TABLE thread_reads (client TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)",
)
_FORGET = f"DELETE FROM thread_reads WHERE at < {_NOW} - 86400"  # noqa: S608
_TAKE = f"""
    INSERT INTO thread_claims (thread_id, holder, expires)
    VALUES (:thread, :holder, {_NOW} + {SECONDS})
    ON CONFLICT (thread_id) DO UPDATE
    SET holder = excluded.holder, expires = excluded.expires, is_cancelled = FALSE
    WHERE thread_claims.expires < {_NOW} RETURNING holder
"""  # noqa: S608
_HAND_ON = """
    UPDATE thread_claims SET holder = :run WHERE thread_id = :thread AND holder = :request
    RETURNING holder
"""
_DROP = "DELETE FROM thread_claims WHERE thread_id = :thread AND holder = :holder"
_CANCEL = "UPDATE thread_claims SET is_cancelled = TRUE WHERE thread_id = :thread AND holder = :run"
_FIND_LEFT = f"""
    SELECT DISTINCT thread_id FROM runs WHERE status IN ('pending', 'running')
    AND updated_at < clock_timestamp() - interval '{SECONDS} seconds'
    AND thread_id NOT IN (SELECT thread_id FROM thread_claims WHERE expires >= {_NOW})
"""  # noqa: S608
"""Threads with runs that no claim covers; a run that has just begun may have none yet."""
_RENEW = f"""
    UPDATE thread_claims SET expires = {_NOW} + {SECONDS} WHERE holder = ANY(:runs)
    RETURNING holder, is_cancelled
"""  # noqa: S608
_FIND_MESSAGE = f"""
    SELECT run_id FROM runs WHERE thread_id = :thread AND status IN ('pending', 'running')
    AND jsonb_typeof(input) = 'object'
    AND starts_with(config -> 'configurable' ->> '{CLAIM}', :clone)
    AND run_id NOT IN (
        SELECT metadata ->> 'run_id' FROM checkpoints
        WHERE thread_id = runs.thread_id AND metadata ->> 'run_id' IS NOT NULL)
    ORDER BY created_at LIMIT 1
"""  # noqa: S608
"""Messages for this clone: another one may have other modes and another workspace."""
_END_RUNS = """
    UPDATE runs SET status = 'interrupted'
    WHERE thread_id = :thread AND status IN ('pending', 'running')
"""
_END_THREAD = """
    UPDATE thread SET status = 'interrupted', updated_at = now()
    WHERE thread_id = :thread AND status = ANY(:ended)
"""
BUSY = "thread {} has a run: wait until it has ended, or cancel it"


def make_holder() -> str:
    """Name a request, so that a process knows the requests to its own clone."""
    return f"{CLONE['clone']}:{uuid4().hex}"


class Claims:
    """Claims of all processes. A thread's holder is a request, then the run that it has begun."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._runs = dict[str, asyncio.Task[object]]()
        """The runs that go on in this process."""
        self._drops = set[asyncio.Task[None]]()
        self._renewal: asyncio.Task[None] | None = None
        self._renewed = 0.0

    async def take(self, thread: str, holder: str) -> bool:
        """Claim the thread; False if another holder has it."""
        return bool(await self._database.execute(_TAKE, thread=thread, holder=holder))

    async def drop(self, thread: str, holder: str) -> None:
        """Release the thread; without effect if another holder has it by now."""
        await self._database.execute(_DROP, thread=thread, holder=holder)

    async def cancel(self, thread: str, run: str) -> None:
        """Have the process that has the run end it within about a second."""
        await self._database.execute(_CANCEL, thread=thread, run=run)

    async def settle(self, thread: str) -> None:
        """Correct Aegra's lists after a crash, or an answer that was refused or cut off.

        Else Aegra takes no answer. Only the thread's holder may call this.
        """
        await self._database.execute(_END_RUNS, thread=thread)
        is_asked = await list_questions(self._database, thread)
        ended = ["busy", "error", *(["idle"] if is_asked else [])]
        await self._database.execute(_END_THREAD, thread=thread, ended=ended)

    async def settle_what_is_left(self) -> None:
        """Settle the threads whose run's process is gone, or was stopped for too long.

        If that process goes on, it finds its claim gone and ends the run. A message with which it
        had not begun is run again.
        """
        for (thread,) in await self._database.execute(_FIND_LEFT):
            holder = make_holder()
            if await self.take(thread, holder) and not await self._begin_again(thread, holder):
                await self.settle(thread)
                await self.drop(thread, holder)

    async def _begin_again(self, thread: str, holder: str) -> bool:
        rows = await self._database.execute(_FIND_MESSAGE, thread=thread, clone=CLONE["clone"])
        if not rows:
            return False
        async with get_session_maker()() as session:
            run = await session.get_one(Run, rows[0][0])
        try:
            job = RunJob.from_run_orm(run)
        except (ValueError, LookupError):  # another version of Aegra has written it
            return False
        job.execution.config["configurable"][CLAIM] = holder
        await executor.submit(job)
        return True

    async def begin_run(self, thread: str, run: str, request: str | None) -> None:
        """Claim the thread for the run of the current task, until the task ends.

        ``request`` is the holder that has claimed it for the run, if there is one. Raises
        ``InvalidInputError`` if another holder has it.
        """
        is_passed_on = request and await self._database.execute(
            _HAND_ON, run=run, thread=thread, request=request
        )
        if not is_passed_on and not await self.take(thread, run):
            raise InvalidInputError(BUSY.format(thread))
        task = asyncio.current_task()
        assert task is not None
        self._runs[run] = task
        if self._renewal is None or self._renewal.done():
            self._renewed = time.monotonic()
            self._renewal = asyncio.create_task(self._renew())
        task.add_done_callback(lambda _: self._end_run(thread, run))

    def _end_run(self, thread: str, run: str) -> None:
        del self._runs[run]
        task = asyncio.create_task(self.drop(thread, run))
        self._drops.add(task)  # or it may be collected before it has ended
        task.add_done_callback(self._drops.discard)

    async def end(self) -> None:
        """Wait, within a bound, until the claims of all runs that have ended are released."""
        if self._drops:
            await asyncio.wait(self._drops, timeout=SECONDS)

    async def _renew(self) -> None:
        while runs := [*self._runs]:
            kept = {*runs}
            try:
                async with asyncio.timeout(SECONDS / 3):
                    rows = await self._database.execute(_RENEW, runs=runs)
                self._renewed = time.monotonic()
                kept = {run for run, is_cancelled in rows if not is_cancelled}
            except (StorageError, TimeoutError):
                if time.monotonic() - self._renewed > SECONDS / 2:
                    kept = set()
            for run in {*runs} - kept:
                if run in self._runs:
                    self._runs[run].cancel()
            await asyncio.sleep(1)


@cache
def get_claims() -> Claims:
    """The process's one object of this class."""
    return Claims(database)


async def prepare_database() -> None:
    """Make or change all tables, one process at a time; raises ``StorageError``.

    Aegra's migrations and its first assistant fail if two processes start together.
    """
    await prepare_tables(database)
    await database.migrate("aegra", _STEPS)
    await database.execute(_FORGET)
    async with migrating(database):
        await asyncio.to_thread(run_migrations)
        await db_manager.initialize()
        await get_langgraph_service().initialize()
        await db_manager.close()
    await database.close()


_NOTE = """
    INSERT INTO thread_reads (client, at) VALUES (:client, :at)
    ON CONFLICT (client) DO UPDATE SET at = excluded.at
"""
_FIND = "SELECT coalesce(max(at), 0) FROM thread_reads WHERE client = ANY(:clients)"


@dataclass(frozen=True)
class BindSharedAnswers(BindAnswers):
    """ASGI middleware; the times at which clients have read are in Postgres."""

    @override
    async def note_read(self, client: Client) -> None:
        if client[-1] != OURSELVES:
            with suppress(StorageError):  # the answer has been sent; what is not noted was not read
                await database.execute(_NOTE, client=_hash(client), at=time.time())

    @override
    async def find_read(self, clients: Sequence[Client]) -> float:
        ((at,),) = await database.execute(_FIND, clients=[_hash(client) for client in clients])
        return float(at)


def _hash(client: Client) -> str:
    """The client as a hash, because its text has a token in it."""
    return sha256("\n".join(client).encode()).hexdigest()
