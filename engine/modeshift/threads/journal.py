"""``Journal``: what was taken in, decided and begun, so that no crash makes it happen twice.

Its tables are in the database of the checkpoints. A row of ``effects`` is there before a call that
changes something starts; whoever comes to that call again finds it, in whichever process.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from uuid import uuid4

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import TypeAdapter

from modeshift.messages.normal_form import get_call_id
from modeshift.messages.repair import DONE, UNKNOWN, build_not_run_result
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.facts import Done, end_unseen
from modeshift.modes.plain_data import JsonObject
from modeshift.storage.database import Database, Row
from modeshift.storage.kept_threads import JOURNAL_STEPS, JOURNAL_TABLES, RELIEVED
from modeshift.storage.sqlite import MemoryDatabase
from modeshift.storage.threads import has_checkpoint
from modeshift.threads.owners import Owner

T = TypeVar("T")
CallState = Literal["started", "done", "failed", "unknown"]
FileDigests = Mapping[str, str]
"""Digests of files, by path."""
UNREADABLE = "unreadable"
"""In the place of a digest: nobody can say what the file holds."""
LEASE = 30.0
"""Seconds, where several machines use the database."""
_SECONDS_BETWEEN = 0.2
_SECONDS_TO_STORE = 60
_FIND_HOLD = "SELECT hold FROM holders WHERE thread_id = :thread AND owner = :owner"
_TAKE_HOLD = """
    INSERT INTO holders (thread_id, owner, hold) VALUES (:thread, :owner, :hold)
    ON CONFLICT (thread_id) DO UPDATE SET owner = excluded.owner, hold = excluded.hold
    WHERE holders.owner <> excluded.owner RETURNING hold
"""
_FIND_OTHER = "SELECT owner FROM holders WHERE thread_id = :thread AND owner <> :owner"
_DECIDE = """
    INSERT INTO decisions VALUES (:thread, :question, :decisions, :who, :now)
    ON CONFLICT DO NOTHING RETURNING who
"""
_BEGIN = f"""
    INSERT INTO effects SELECT :key, :thread, :tool, :owner, {{clock}} + :lease, 'started', NULL,
        :before, :after, :done, :now
    WHERE NOT EXISTS ({_FIND_OTHER}) ON CONFLICT DO NOTHING RETURNING key
"""
_READ = """
    SELECT owner, state, lease < {clock}, files_before, files_after, done, result
    FROM effects WHERE key = :key
"""
_LIST_GOING = """
    SELECT key, owner, tool FROM effects WHERE thread_id = :thread AND state = 'started'
    AND NOT coalesce(lease < {clock}, FALSE) ORDER BY started_at
"""
_RENEW = """
    UPDATE effects SET lease = {clock} + :lease WHERE key = :key AND state = 'started'
    RETURNING key
"""
_FINISH = """
    UPDATE effects SET state = :state, result = :result, files_after = :after, done = :done
    WHERE key = :key AND owner = :owner
"""
_IS_STARTED = "WHERE key = :key AND owner = :owner AND state = 'started' RETURNING key"
_SETTLE = f"UPDATE effects SET state = :state {_IS_STARTED}"  # noqa: S608  # ours
_FORGET = f"DELETE FROM effects {_IS_STARTED}"  # noqa: S608  # ours
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
    """Digests of the files that it edits, as it is to leave them or has left them."""
    done: Done
    """The call as facts follow from it."""
    result: ToolMessage | None = None

    @classmethod
    def unseen(cls, mode: str) -> Self:
        """A call of which nobody knows whether it began, in this mode."""
        return cls("", "unknown", is_late=True, before={}, after={}, done=end_unseen(mode))

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
    """A process's journal in a database; raises ``StorageError`` where that cannot be used."""

    def __init__(
        self, database: Database | None = None, beside: Path | None = None, lease: float = LEASE
    ) -> None:
        """In memory without ``database``; the files that owners lock lie next to ``beside``."""
        self.id = uuid4().hex[:16] if database is None else "database"
        """See ``mark``."""
        self.database = database or MemoryDatabase()
        self.lease = lease
        self.beside = beside
        self.holds = dict[str, Hold]()
        """The holds of the runs of this process, by thread; removed when the run has ended."""
        self.running = set["RunningCall"]()
        """The calls that this process has begun and that may still do something."""
        self._owner = Owner(beside)
        self._is_ready = False

    def mark(self, thread: str) -> str:
        """Stored in each plan: elsewhere, in a copy of the thread say, nobody knows what began."""
        return f"{self.id} {thread}"

    def hold(self, thread: str) -> "Hold":
        """This process's hold on the thread, which it may have yet to take."""
        return self.holds.get(thread) or Hold(self, thread)

    async def take_input(self, thread: str, run: str) -> bool:
        """Record that a run brings its input; False if that was recorded before."""
        insert = "INSERT INTO inputs VALUES (:thread, :run) ON CONFLICT DO NOTHING RETURNING run_id"
        return bool(await self.execute(insert, thread=thread, run=run))

    async def decide(self, thread: str, question: str, decisions: object, who: str) -> None:
        """Commit a person's answer; raises ``InvalidInputError`` if there is another one."""
        answer = json.dumps(decisions, sort_keys=True)
        named = {"thread": thread, "question": question, "decisions": answer, "who": who}
        if not await self.execute(_DECIDE, **named):
            decided = await self.find_decisions(thread, question)
            if decided != json.loads(answer):
                kinds = ", ".join(each["type"] for each in decided or ()) or "nothing"
                raise InvalidInputError(
                    f"this question was answered before, with {kinds}, and that answer counts; "
                    "send a message to go on from it"
                )

    async def find_decisions(self, thread: str, question: str) -> Any:
        """The answer to a question; None if nobody has given one."""
        select = "SELECT decisions FROM decisions WHERE thread_id = :thread AND question = :id"
        rows = await self.look(select, thread=thread, id=question)
        return json.loads(rows[0][0]) if rows else None

    async def count_effects(self) -> dict[str, int]:
        """By state, the calls that changed something, of all threads that there are."""
        return dict(await self.execute("SELECT state, count(*) FROM effects GROUP BY state"))

    async def find(
        self, key: str, digest: Callable[[FileDigests], Awaitable[FileDigests]]
    ) -> BegunCall | None:
        """The call as it ended; None if it has not begun, or certainly did nothing.

        Waits while its owner lives; of a dead one's edit, the files say what has come of it, whose
        digests ``digest`` gives.
        """
        while (effect := await self.read(key)) is not None and effect.state == "started":
            has_ended = not self._is_running(key)
            if effect.owner != self._owner.id:
                is_dead = await asyncio.to_thread(self._owner.sees_dead, effect.owner)
                has_ended = bool(is_dead or (is_dead is None and self.database.clock == "NULL"))
            if not has_ended and not effect.is_late:
                await asyncio.sleep(_SECONDS_BETWEEN)
                continue
            state = effect.compare(await digest(effect.before), has_ended=has_ended)
            if state is not None:
                await self.execute(_SETTLE, state=state, key=key, owner=effect.owner)
            elif await self.execute(_FORGET, key=key, owner=effect.owner):
                return None
        return effect

    async def list_going(self, thread: str) -> list[str]:
        """The tools of its calls that go on and may change something, in whichever process."""
        rows = await self.execute(_LIST_GOING, thread=thread)
        return [tool for key, owner, tool in rows if await self._goes_on(key, owner)]

    async def _goes_on(self, key: str, owner: str) -> bool:
        if owner == self._owner.id:
            return self._is_running(key)
        return not await asyncio.to_thread(self._owner.sees_dead, owner)

    def _is_running(self, key: str) -> bool:
        return any(call.key == key for call in self.running)

    async def delete_thread(self, thread: str) -> None:
        """Forget all of a thread."""
        for table in JOURNAL_TABLES:
            await self.execute(f"DELETE FROM {table} WHERE thread_id = :thread", thread=thread)  # noqa: S608  # ours

    async def read(self, key: str) -> BegunCall | None:
        """The call as it stands in the database; None if it has not begun."""
        rows = await self.look(_READ, key=key)
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

    async def execute(self, statement: str, **values: object) -> list[Row]:
        """Execute, with ``:owner``, ``:lease``, ``:now`` and ``{clock}`` filled in."""
        return await self._use(self.database.execute, statement, values)

    async def look(self, statement: str, **values: object) -> list[Row]:
        """As ``execute``, by ``Database.look``."""
        return await self._use(self.database.look, statement, values)

    async def _use(
        self, execute: Callable[..., Awaitable[list[Row]]], statement: str, values: JsonObject
    ) -> list[Row]:
        if not self._is_ready:
            await self._prepare()
        now = datetime.now(UTC).isoformat()
        known = {"owner": self._owner.id, "lease": self.lease, "now": now, **values}
        return await execute(statement.format(clock=self.database.clock), **known)

    async def _prepare(self) -> None:
        try:
            await asyncio.to_thread(self._owner.prepare)
        except OSError as error:
            raise StorageError(f"no lock can be made beside the database: {error}") from error
        await self.database.migrate("journal", JOURNAL_STEPS)
        self._is_ready = True


class Hold:
    """A process's hold on a thread: no other process begins a call of it meanwhile."""

    def __init__(self, journal: Journal, thread: str) -> None:
        self._journal = journal
        self._thread = thread
        self._checked: float | None = None
        """When it was last looked up; None before it is taken."""

    async def take(self) -> str:
        """Take it from whoever has it; gives its name, which is another after each takeover.

        The thread must be read after this: then what another process has begun is in its plan.
        """
        thread, hold = self._thread, uuid4().hex
        while not (rows := await self._journal.look(_FIND_HOLD, thread=thread)):
            if rows := await self._journal.execute(_TAKE_HOLD, thread=thread, hold=hold):
                break
        self._checked = _read_clock()
        self._journal.holds[self._thread] = self
        return str(rows[0][0])

    async def keep(self) -> None:
        """As ``check``, if a second has passed: this process may have been stopped."""
        if self._checked is not None and _read_clock() - self._checked > 1:
            await self.check()
            self._checked = _read_clock()

    async def check(self) -> None:
        """Raises ``InvalidInputError`` if another process goes on with the thread."""
        if await self._journal.look(_FIND_OTHER, thread=self._thread):
            raise InvalidInputError(RELIEVED)

    async def wait_for(self, saver: BaseCheckpointSaver[str], checkpoint: str) -> None:
        """Wait until it is stored: a run that is cut off goes on from it, and finds its calls.

        LangGraph stores it while the next node runs already. ``saver`` may be a platform's own.
        """
        if self._journal.id != "database":
            return
        until = _read_clock() + _SECONDS_TO_STORE
        while not await has_checkpoint(saver, self._thread, checkpoint):
            await self.keep()
            if _read_clock() > until:
                raise StorageError(f"checkpoint {checkpoint} was not stored; try again")
            await asyncio.sleep(0.002)

    async def begin(
        self, key: str, tool: str, before: FileDigests, after: FileDigests, done: Done
    ) -> "RunningCall | None":
        """Commit that a call starts now; None, with nothing changed, if it has started before.

        So too if another process goes on with the thread. ``after`` and ``done`` are foreseen.
        """
        call, rows = RunningCall(self._journal, key), list[Row]()
        values = {"before": before, "after": after, "done": asdict(done)}
        written = {name: json.dumps(value) for name, value in values.items()}
        self._journal.running.add(call)  # first: whoever finds the row must see that it goes on
        try:
            rows = await self._journal.execute(
                _BEGIN, key=key, thread=self._thread, tool=tool, **written
            )
        finally:
            if not rows:
                call.leave()
        return call if rows else None


class RunningCall:
    """A call that has begun in this process, until it is left."""

    def __init__(self, journal: Journal, key: str) -> None:
        self.key = key
        self._journal = journal
        self._seconds = journal.lease * 2 / 3
        """How long it may go on by a lease, which ends later for all others."""
        self._until = _read_clock() + self._seconds

    async def keep(self, run: Coroutine[object, None, T]) -> T:
        """The result of ``run``, which is cancelled before a lease ends that cannot be renewed."""
        if self._journal.database.clock == "NULL":
            return await run
        task: asyncio.Task[T] | None = None
        try:
            self._check_lease()
            task = asyncio.create_task(run)
            while not (await asyncio.wait({task}, timeout=self._journal.lease / 6))[0]:
                await self._renew()
                self._check_lease()
            return task.result()
        finally:
            if task is None:
                run.close()
            elif not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _check_lease(self) -> None:
        if _read_clock() > self._until:
            raise StorageError(
                f"{self._journal.database.name} was not heard of for {self._seconds:g} s, so the "
                "call was stopped; it may have taken effect"
            )

    async def _renew(self) -> None:
        """Go on for longer, unless the lease cannot be renewed."""
        began = _read_clock()
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(max(self._until - began, 0)):
                if await self._journal.execute(_RENEW, key=self.key):
                    self._until = began + self._seconds

    async def finish(self, result: ToolMessage, after: FileDigests, done: Done) -> None:
        """Commit the result; a row that is gone was deleted with its thread."""
        kind, data = _serializer.dumps_typed(result)
        state: CallState = "done" if result.status == "success" else "failed"
        values = {"state": state, "result": f"{kind}:{data.hex()}", "key": self.key}
        values |= {"after": json.dumps(after), "done": json.dumps(asdict(done))}
        await self._journal.execute(_FINISH, **values)

    async def stop(self, digest: Callable[[FileDigests], Awaitable[FileDigests]]) -> None:
        """Commit what may have come of it, so that no other process waits for this one to end."""
        begun = await self._journal.read(self.key)
        if begun is not None and begun.state == "started":
            state = begun.compare(await digest(begun.before), has_ended=False)
            await self._journal.execute(_SETTLE, state=state, key=self.key)

    async def take_back(self) -> None:
        """Forget its start: nothing followed."""
        await self._journal.execute(_FORGET, key=self.key)

    def leave(self) -> None:
        """It has ended, or was cancelled: this process does no more of it."""
        self._journal.running.discard(self)


def _read_clock() -> float:
    """Seconds, which go on while the process, or the machine, is stopped."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
