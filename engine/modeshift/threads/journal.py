"""``Journal``: what was taken in, decided and begun, so that no crash makes it happen twice.

Its tables are in the database of the checkpoints. A row of ``effects`` is there before a call that
changes something starts; whoever comes to that call again finds it, in whichever process.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import TypeAdapter

from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import DONE, UNKNOWN, build_not_run_result
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.facts import Done, end_unseen
from modeshift.storage.database import Database, Row
from modeshift.storage.kept_threads import RELIEVED
from modeshift.storage.sqlite import MemoryDatabase
from modeshift.storage.threads import has_checkpoint
from modeshift.threads.owners import Owner

T = TypeVar("T")
CallState = Literal["started", "done", "failed", "unknown"]
FileDigests = Mapping[str, str]
"""Of files, by path."""
TABLES = ("holders", "inputs", "decisions", "effects")
"""Each has a column ``thread_id``: what is deleted with a thread."""
STEPS = (
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
)
UNREADABLE = "unreadable"
"""In the place of a digest: nobody can say what the file holds."""
LEASE = 30.0
"""Seconds, where several machines use the database."""
_SECONDS_BETWEEN = 0.2
_SECONDS_TO_STORE = 60
_FINISH = (
    "UPDATE effects SET state = ?, result = ?, files_after = ?, done = ? "
    "WHERE key = ? AND owner = ?"
)
_SETTLE = (
    "UPDATE effects SET state = ? WHERE key = ? AND owner = ? AND state = 'started' RETURNING key"
)
_FORGET = "DELETE FROM effects WHERE key = ? AND owner = ? AND state = 'started' RETURNING key"
_done = TypeAdapter(Done)
_serializer = JsonPlusSerializer()


@dataclass(frozen=True)
class BegunCall:
    """A call that has begun."""

    owner: str
    state: CallState
    is_late: bool
    """Whether its lease has ended."""
    before: FileDigests
    after: FileDigests
    """Of the files that it edits: as it is to leave them, or has left them."""
    done: Done
    """What facts follow from."""
    result: ToolMessage | None

    def compare(self, now: FileDigests, *, has_ended: bool) -> CallState | None:
        """What has come of it, by the files as they are; None if it has certainly not run.

        ``has_ended``: whether its process can do nothing any more.
        """
        if not self.after or UNREADABLE in now.values():  # an own tool's may do more than edit
            return "unknown"
        if now == self.after:
            return "done"
        return None if has_ended and now == self.before else "unknown"

    def build_result(self, call: ToolCall) -> ToolMessage:
        """What the model is told when the call comes again."""
        if self.result is not None:
            return self.result
        if self.state == "done":
            return ToolMessage(DONE, tool_call_id=get_call_id(call), name=call["name"])
        return build_not_run_result(call, UNKNOWN)


class Journal:
    """One to a process and database. Raises ``StorageError`` where that cannot be used."""

    def __init__(
        self, database: Database | None = None, beside: Path | None = None, lease: float = LEASE
    ) -> None:
        """Without a database in memory. ``beside`` is the file by which the locks of owners are."""
        self.id = uuid4().hex[:16] if database is None else "database"
        """See ``mark``."""
        self._database = database or MemoryDatabase()
        self._owner = Owner(beside)
        self._lease = lease
        self._running = dict[str, float]()
        """By key, until when each may go on."""
        self._held = dict[str, float]()
        """By thread that a run of this process goes on with, when that was last looked up."""
        self._is_ready = False

    # Runs, inputs and decisions

    async def hold(self, thread: str) -> str:
        """From now on this process goes on with the thread, and no other one begins a call of it.

        It must be read after this: then what another one has begun is in its plan. Gives the
        hold, which is another one after each takeover.
        """
        select = "SELECT hold FROM holders WHERE thread_id = ? AND owner = ?"
        upsert = (
            "INSERT INTO holders (thread_id, owner, hold) VALUES (?, ?, ?) "
            "ON CONFLICT (thread_id) DO UPDATE SET owner = excluded.owner, hold = excluded.hold "
            "WHERE holders.owner <> excluded.owner RETURNING hold"
        )
        owner = await self._prepare()
        while not (rows := await self._execute(select, thread, owner)):
            if rows := await self._execute(upsert, thread, owner, uuid4().hex):
                break
        self._held[thread] = _read_clock()
        return str(rows[0][0])

    async def keep_hold(self, thread: str) -> None:
        """As ``check_holder``, if a second has passed: this process may have been stopped."""
        if thread in self._held and _read_clock() - self._held[thread] > 1:
            await self.check_holder(thread)
            self._held[thread] = _read_clock()

    def let_go(self, thread: str) -> None:
        """The run has ended."""
        self._held.pop(thread, None)

    async def check_holder(self, thread: str) -> None:
        """Raises ``InvalidInputError`` if another process goes on with the thread."""
        select = "SELECT owner FROM holders WHERE thread_id = ? AND owner <> ?"
        if await self._execute(select, thread, await self._prepare()):
            raise InvalidInputError(RELIEVED)

    async def take_input(self, thread: str, run: str) -> bool:
        """Record that a run brings its input; False if that was recorded before."""
        insert = "INSERT INTO inputs VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING run_id"
        return bool(await self._execute(insert, thread, run))

    async def decide(self, thread: str, question: str, decisions: object, who: str) -> None:
        """Commit a person's answer; raises ``InvalidInputError`` if there is another one."""
        given, now = json.dumps(decisions, sort_keys=True), datetime.now(UTC).isoformat()
        insert = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING who"
        if not await self._execute(insert, thread, question, given, who, now):
            decided = await self.find_decisions(thread, question)
            if decided != json.loads(given):
                kinds = ", ".join(each["type"] for each in decided or ()) or "nothing"
                raise InvalidInputError(
                    f"this question was answered before, with {kinds}, and that answer counts; "
                    "send a message to go on from it"
                )

    async def count_effects(self) -> dict[str, int]:
        """By state, the calls that changed something, of all threads that there are."""
        await self._prepare()
        return dict(await self._execute("SELECT state, count(*) FROM effects GROUP BY state"))

    async def find_decisions(self, thread: str, question: str) -> Any:
        """The answer to a question; None if nobody has given one."""
        select = "SELECT decisions FROM decisions WHERE thread_id = ? AND question = ?"
        rows = await self._execute(select, thread, question)
        return json.loads(rows[0][0]) if rows else None

    # Effects

    async def find(
        self, key: str, digest: Callable[[FileDigests], Awaitable[FileDigests]]
    ) -> BegunCall | None:
        """The call as it ended; None if it has not begun, or certainly did nothing.

        Waits while its owner lives; of a dead one's edit, the files say what has come of it, whose
        digests ``digest`` gives.
        """
        while (effect := await self._read(key)) is not None and effect.state == "started":
            has_ended = key not in self._running
            if effect.owner != await self._prepare():
                is_dead = await asyncio.to_thread(self._owner.sees_dead, effect.owner)
                has_ended = bool(is_dead or (is_dead is None and self._database.clock == "NULL"))
            if not has_ended and not effect.is_late:
                await asyncio.sleep(_SECONDS_BETWEEN)
                continue
            state = effect.compare(await digest(effect.before), has_ended=has_ended)
            if state is not None:
                await self._execute(_SETTLE, state, key, effect.owner)
            elif await self._execute(_FORGET, key, effect.owner):
                return None
        return effect

    def mark(self, thread: str) -> str:
        """Stored in each plan: elsewhere, in a copy of the thread say, nobody knows what began."""
        return f"{self.id} {thread}"

    async def has_begun(self, key: str) -> bool:
        """Whether there is such a call, however it ended."""
        return await self._read(key) is not None

    async def list_going(self, thread: str) -> list[str]:
        """The tools of its calls that go on and may change something, in whichever process."""
        rows = await self._execute(
            "SELECT key, owner, tool FROM effects WHERE thread_id = ? AND state = 'started' "  # noqa: S608  # ours
            f"AND NOT coalesce(lease < {self._database.clock}, FALSE) ORDER BY started_at",
            thread,
        )
        return [tool for key, owner, tool in rows if await self._goes_on(key, owner)]

    async def _goes_on(self, key: str, owner: str) -> bool:
        if owner == await self._prepare():
            return key in self._running
        return not await asyncio.to_thread(self._owner.sees_dead, owner)

    async def wait_for(self, saver: BaseCheckpointSaver[Any], thread: str, checkpoint: str) -> None:
        """Wait until it is stored: a run that is cut off goes on from it, and finds its calls.

        LangGraph stores it while the next node runs already. ``saver`` may be a platform's own.
        """
        if self.id != "database":
            return
        until = _read_clock() + _SECONDS_TO_STORE
        while not await has_checkpoint(saver, thread, checkpoint):
            await self.keep_hold(thread)
            if _read_clock() > until:
                raise StorageError(f"checkpoint {checkpoint} was not stored; try again")
            await asyncio.sleep(0.002)

    async def start(
        self, key: str, thread: str, tool: str, before: FileDigests, after: FileDigests, done: Done
    ) -> bool:
        """Commit that the call starts now; False, and nothing is changed, if it has before.

        Or if another process goes on with the thread. ``after`` and ``done`` are foreseen.
        """
        owner, now = await self._prepare(), datetime.now(UTC).isoformat()
        insert = (
            f"INSERT INTO effects SELECT ?, ?, ?, ?, {self._database.clock} + ?, 'started', NULL, "  # noqa: S608  # ours
            "?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM holders WHERE thread_id = ? AND owner <> ?)"
            " ON CONFLICT DO NOTHING RETURNING key"
        )
        given = (key, thread, tool, owner, self._lease)
        foreseen = json.dumps(before), json.dumps(after), json.dumps(asdict(done))
        self._running[key] = _read_clock() + self._lease * 2 / 3
        try:
            rows = await self._execute(insert, *given, *foreseen, now, thread, owner)
        except BaseException:
            self._running.pop(key, None)
            raise
        if not rows:
            self._running.pop(key, None)
        return bool(rows)

    async def keep(self, key: str, run: Coroutine[Any, Any, T]) -> T:
        """The result of ``run``, which is cancelled before a lease ends that cannot be renewed."""
        if self._database.clock == "NULL":
            return await run
        task: asyncio.Task[T] | None = None
        try:
            self._check_lease(key)
            task = asyncio.create_task(run)
            while not (await asyncio.wait({task}, timeout=self._lease / 6))[0]:
                if until := await self._renew(key):
                    self._running[key] = until
                self._check_lease(key)
            return task.result()
        finally:
            if task is None:
                run.close()
            elif not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _check_lease(self, key: str) -> None:
        if _read_clock() > self._running[key]:
            raise StorageError(
                f"{self._database.name} was not heard of for {self._lease * 2 / 3:g} s, so the "
                "call was stopped; it may have taken effect"
            )

    async def _renew(self, key: str) -> float | None:
        """Until when the call may go on now; None where the lease could not be renewed."""
        began, until = _read_clock(), self._running[key]
        update = (
            f"UPDATE effects SET lease = {self._database.clock} + ? "  # noqa: S608  # ours
            "WHERE key = ? AND state = 'started' RETURNING key"
        )
        try:
            async with asyncio.timeout(max(until - began, 0)):
                rows = await self._execute(update, self._lease, key)
        except (StorageError, TimeoutError):
            return None
        return began + self._lease * 2 / 3 if rows else None

    async def finish(self, key: str, result: ToolMessage, after: FileDigests, done: Done) -> None:
        """Commit the result; a row that is gone was deleted with its thread."""
        kind, data = _serializer.dumps_typed(result)
        state: CallState = "done" if result.status == "success" else "failed"
        stored = f"{kind}:{data.hex()}"
        owner = await self._prepare()
        now = json.dumps(after), json.dumps(asdict(done))
        await self._execute(_FINISH, state, stored, *now, key, owner)

    async def take_back(self, key: str) -> None:
        """Forget its start: nothing followed."""
        await self._execute(_FORGET, key, await self._prepare())

    def leave(self, key: str) -> None:
        """The call has ended, or was cancelled: this process does no more of it."""
        self._running.pop(key, None)

    async def delete_thread(self, thread: str) -> None:
        """Forget all of a thread."""
        for table in TABLES:
            await self._execute(f"DELETE FROM {table} WHERE thread_id = ?", thread)  # noqa: S608  # ours

    async def _read(self, key: str) -> BegunCall | None:
        clock = self._database.clock
        rows = await self._execute(
            f"SELECT owner, state, lease < {clock}, files_before, files_after, done, result "  # noqa: S608  # ours
            "FROM effects WHERE key = ?",
            key,
        )
        if not rows:
            return None
        owner, state, is_late, before, after, told, stored = rows[0]
        kind, _, data = (stored or "").partition(":")
        result = _serializer.loads_typed((kind, bytes.fromhex(data))) if stored else None
        files = json.loads(before), json.loads(after)
        done = _done.validate_python(json.loads(told))
        if state == "unknown":
            done = end_unseen(done.mode)
        return BegunCall(owner, state, bool(is_late), *files, done, result)

    async def _prepare(self) -> str:
        if not self._owner.id:
            try:
                await asyncio.to_thread(self._owner.prepare)
            except OSError as error:
                raise StorageError(f"no lock can be made beside the database: {error}") from error
        return self._owner.id

    async def _execute(self, statement: str, *values: Any) -> list[Row]:
        if not self._is_ready:
            await self._database.migrate("journal", STEPS)
            self._is_ready = True
        return await self._database.execute(statement, *values)


def _read_clock() -> float:
    """Seconds, which go on while the process, or the machine, is stopped."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
