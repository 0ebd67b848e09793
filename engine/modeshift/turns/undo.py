"""``Undo``: files and conversation go back to before a message, or to before the last undo.

Of files only what the thread's calls have changed, and none that is not as they left it. No right
comes back: each is the stricter one of then and now.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from modeshift.calls.remembered import list_remembered
from modeshift.models.usage import add_tokens
from modeshift.modes.errors import InvalidInputError, ToolFailedError
from modeshift.modes.phases import Phase
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.policy import Approvals
from modeshift.threads.audit import append_entry
from modeshift.threads.compiled import writes_anything
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import UNKNOWN
from modeshift.threads.mailbox import REVISION, RIGHTS, StateValues, read_host_changes
from modeshift.tools.processes.workspace_lock import workspace_lock
from modeshift.tools.workspace.text import show_name
from modeshift.tools.workspace.undo_log import (
    OTHER,
    UNSEEN,
    CallRecord,
    Held,
    KeptCall,
    KeptFile,
    UndoLog,
)
from modeshift.tools.workspace.workspace import Workspace

LAST, BACK = "last", "back"
"""In place of a message's id: the last message; or to before the last undo."""
NOT_KEPT = (
    "what changed since then is not kept here: UNDO_DAYS was 0 or has passed, or the thread was "
    "copied, summarized, or went on elsewhere or in an older version; nothing is undone"
)
RUNS = "a run goes on in this thread; stop it before you undo"
CUT_OFF = "An undo was cut off, so it did nothing; undo again if you want it."
UndoPreview = dict[str, Any]
"""``message``; ``files``: by path what is done, or why nothing is; ``stays``: what calls did that
cannot go back; ``rights``: mode, limit and approvals afterwards; the ``digest`` of all that."""


class _Plan(NamedTuple):
    preview: UndoPreview
    files: list[KeptFile]  # as they are now, and are then
    left: str  # a checkpoint's id
    before: RunnableConfig
    values: dict[str, object]


@dataclass(frozen=True)
class Undo:
    """The undo of one thread; raises ``UserError``."""

    deps: AgentDeps
    graph: Any
    """An ``Agent``, or one on a server."""
    thread: str
    store: BaseStore | None

    async def run(self, message: str, digest: str | None = None) -> UndoPreview:
        """Show what it does; do it, where the ``digest`` is that of what was shown."""
        state = await self._find_idle()
        cut_off = await take_back_cut_off(self.deps, self.thread, state.values)
        if digest is None:
            preview = (await self._plan(state, message)).preview
            return {**preview, "stays": [*cut_off, *preview["stays"]]}
        journal = self.deps.started_calls.journal
        async with _lock(self.deps):
            plan = await self._plan(await self._find_idle(), message)
            if plan.preview["digest"] != digest:
                raise InvalidInputError("it would be another undo by now; look at it again")
            await self.deps.started_calls.background.end(self.thread)
            await journal.hold(self.thread).take()
            doing = asyncio.ensure_future(self._do(plan))
            try:
                return await asyncio.shield(doing)
            finally:
                await asyncio.wait({doing})  # who asked may have gone
                journal.holds.pop(self.thread, None)

    @property
    def _log(self) -> UndoLog:
        if (log := self.deps.undo_log) is None:
            raise InvalidInputError("nothing is kept for undo here; UNDO_DAYS says for how long")
        return log

    async def _find_idle(self) -> StateSnapshot:
        journal = self.deps.started_calls.journal
        if self.thread in journal.holds or await journal.list_going(self.thread):
            raise InvalidInputError(RUNS)
        return await self._find()

    async def _find(self, **place: object) -> StateSnapshot:
        config = RunnableConfig(configurable={"thread_id": self.thread, **place})
        state: StateSnapshot = await self.graph.aget_state(config)
        return state

    async def _do(self, plan: _Plan) -> UndoPreview:
        log, workspace = self._log, self.deps.toolbox.workspace
        record = CallRecord(log, workspace, self.thread, "undo")
        await asyncio.to_thread(record.note, *plan.files, stays=UNSEEN, back=plan.left)
        try:
            failed = await asyncio.to_thread(_put_back, workspace, log, self.thread, plan.files)
            mark = {"undo_from": await mark_turn(self.deps, self.thread, record.id)}
            writes_anything.set(True)  # in this task, which nobody else has
            await self.graph.aupdate_state(plan.before, plan.values | mark, as_node="intake")
        except BaseException:
            await asyncio.to_thread(_drop, workspace, log, self.thread, record.id)
            raise
        await asyncio.to_thread(record.note, stays="")
        preview = {**plan.preview, "files": plan.preview["files"] | failed}
        entry = {"kind": "undo", **preview, **preview["rights"]}
        journal = self.deps.started_calls.journal
        await append_entry(journal, self.thread, f"undo {record.id}", entry)
        return preview

    async def _plan(self, now: StateSnapshot, message: str) -> _Plan:
        log, workspace = self._log, self.deps.toolbox.workspace
        if message == BACK:
            before, since = await self._find_left()
        else:
            message, before, since = await self._find_message(now, message)
        if before.values.get("subtask"):
            raise InvalidInputError("a sub-task went on then; undo the message that began it")
        calls = await asyncio.to_thread(log.list_calls, self.thread, since)
        files, does = await asyncio.to_thread(_compare, workspace, log, self.thread, calls)
        host_changes = await read_host_changes(self.store, self.thread, now.values)
        values = _choose_values(self.deps, before.values, now.values, host_changes)
        stays = [f"{call.what}: {call.stays}" for call in calls if call.stays and not call.back]
        rights = {key: values[key] for key in RIGHTS}
        shown = {"message": message, "files": does, "stays": stays, "rights": rights}
        parts = [shown, files, now.config, before.config]
        digest = sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]
        left = str(now.config["configurable"]["checkpoint_id"])
        return _Plan({**shown, "digest": digest}, files, left, before.config, values)

    async def _find_message(
        self, now: StateSnapshot, message: str
    ) -> tuple[str, StateSnapshot, int]:
        """The message's id, the thread before it, and how many calls there were then."""
        said, state, since = _list_said(now.values), now, None
        if not said or message not in (LAST, *said):
            raise InvalidInputError(f"no message {message!r} of yours is in this conversation")
        here = (await mark_turn(self.deps, self.thread, "")).split(" ")[:2]
        while message == LAST or message in _list_said(state.values):
            *place, count, id = str(state.values.get("undo_from") or "   ").split(" ")
            if (since is None and place != here) or state.parent_config is None:
                raise InvalidInputError(NOT_KEPT)
            message = id if message == LAST and id in said else message
            since = int(count) if since is None and id == message else since
            state = await self._find(**state.parent_config["configurable"])
        age = datetime.now(UTC) - datetime.fromisoformat(str(state.created_at))
        if since is None or age > timedelta(days=self._log.days):
            raise InvalidInputError(NOT_KEPT)
        return message, state, since

    async def _find_left(self) -> tuple[StateSnapshot, int]:
        """The thread before the last undo, and how many calls there were then."""
        calls = await asyncio.to_thread(self._log.list_calls, self.thread)
        undos = [call for call in calls if call.back and not call.stays]
        if not undos:
            raise InvalidInputError("there is no undo that could be undone")
        state = await self._find(checkpoint_ns="", checkpoint_id=undos[-1].back)
        return state, undos[-1].number


def describe_undo(deps: AgentDeps, preview: UndoPreview, first: str = "Undo") -> list[str]:
    """Lines for a person."""
    hidden = "What ignore rules and git hide, links and empty folders stay as they are."
    rights = ", ".join(f"{key} {value}" for key, value in preview["rights"].items() if value)
    return [
        f"{first}: the conversation goes back; {rights}.",
        *(f"  {show_name(path)} {does}" for path, does in preview["files"].items()),
        *(f"  cannot go back: {to_one_line(text, 200)}" for text in preview["stays"]),
        *([hidden] if deps.toolbox.has_workspace else []),
    ]


async def mark_turn(deps: AgentDeps, thread: str, message: str) -> str:
    """Where the log stands as the turn begins, as the state has it; empty where none is kept."""
    log = deps.undo_log
    return "" if log is None else f"{await asyncio.to_thread(log.mark, thread)} {message}"


async def take_back_cut_off(deps: AgentDeps, thread: str, values: StateValues) -> list[str]:
    """All or nothing: take back what an undo did that a crash has cut off, and say so."""
    told, log, workspace = list[str](), deps.undo_log, deps.toolbox.workspace
    if log is None or not await asyncio.to_thread(_list_cut_off, log, thread):
        return told
    async with _lock(deps):  # which an undo has as it goes on
        for id in await asyncio.to_thread(_list_cut_off, log, thread):
            if str(values.get("undo_from")).endswith(f" {id}"):
                await asyncio.to_thread(log.write, thread, {"call": id, "stays": ""})
            else:
                await asyncio.to_thread(_drop, workspace, log, thread, id)
                told = [CUT_OFF]
    return told


def _lock(deps: AgentDeps) -> AbstractAsyncContextManager[None]:
    root = deps.toolbox.workspace.root
    return workspace_lock(root, lambda _: None) if deps.toolbox.has_workspace else nullcontext()


def _list_cut_off(log: UndoLog, thread: str) -> list[str]:
    return [call.id for call in log.list_calls(thread) if call.back and call.stays]


def _drop(workspace: Workspace, log: UndoLog, thread: str, id: str) -> None:
    """Take an undo back as far as it came, and forget it."""
    calls = [call for call in log.list_calls(thread) if call.id == id]
    _put_back(workspace, log, thread, _compare(workspace, log, thread, calls)[0])
    log.write(thread, {"call": id, "stays": "", "back": None, "files": {}})


def _put_back(
    workspace: Workspace, log: UndoLog, thread: str, files: Sequence[KeptFile]
) -> dict[str, str]:
    """Put the files back; gives those of which it failed, and why."""
    failed = dict[str, str]()
    for path, now, (digest, mode), _ in files:
        try:
            data = None if digest is None else log.find(thread, digest)
            if digest is not None and data is None:
                raise ToolFailedError("what it held is not kept")
            workspace.put_back(path, now, data, mode)
        except ToolFailedError as error:
            failed[path] = str(error)
    return failed


def _compare(
    workspace: Workspace, log: UndoLog, thread: str, calls: Iterable[KeptCall]
) -> tuple[list[KeptFile], dict[str, str]]:
    """What is put back; and of all files, what is done, or why nothing is."""
    changes, files, does = dict[str, list[KeptFile]](), list[KeptFile](), dict[str, str]()
    for call in calls:
        elsewhere = "" if call.workspace == str(workspace.root) else f"it is in {call.workspace}"
        for path, file in call.files.items():
            kept = changes.setdefault(path, [])
            kept.append(file._replace(problem=elsewhere or file.problem))
    workspace.ignored.refresh()
    for path, kept in sorted(changes.items()):
        now, target = workspace.find_held(path), kept[0].before
        if _is_same(now, target):
            continue
        problem = _find_problem(kept, now) or workspace.ignored.find_problem(path)
        if not problem and target[0] is not None and log.find(thread, target[0]) is None:
            problem = "what it held is not kept"
        if not problem and now[0] is not None:
            with workspace.opened_on_disk(path) as opened:
                problem = log.keep(thread, opened.read())  # or nobody could undo the undo
        if problem:
            does[path] = f"stays as it is: {problem}"
        else:
            files.append(KeptFile(path, now, target))
            made = "is made again" if now[0] is None else "goes back to what it held"
            does[path] = "is deleted" if target[0] is None else made
    return files, does


def _find_problem(kept: Sequence[KeptFile], now: Held) -> str:
    if problem := next((file.problem for file in kept if file.problem), ""):
        return problem
    if now[0] == OTHER:
        return "it is a link by now, or no file"
    found = [*(file.before for file in kept[1:]), now]
    are_ours = (_is_same(file.after, held) for file, held in zip(kept, found, strict=True))
    return "" if all(are_ours) else "somebody else has changed it since"


def _is_same(one: Held, other: Held) -> bool:
    """Whether the contents are the same, and the permissions, where they matter."""
    return one[0] == other[0] and (one[1] == other[1] or None in (one[1], other[1]))


def _list_said(values: StateValues) -> list[str]:
    """The ids of a person's messages, without those in a sub-task."""
    outer = (values.get("parents") or [values])[0].get("messages") or []
    given = [each if isinstance(each, dict) else vars(each) for each in outer]
    return [str(each["id"]) for each in given if each["type"] == "human"]


def _choose_values(
    deps: AgentDeps, then: StateValues, now: StateValues, host_changes: StateValues
) -> dict[str, object]:
    """What the thread goes on with where it was."""
    outer = {**(now.get("parents") or [now])[0], **host_changes}
    known = {each["id"] for each in list_remembered(now, host_changes)}
    policies = {each.get("approvals", deps.approvals.value) for each in (then, outer, now)}
    old, usage = (each.get("usage", {}) for each in (then, now))
    beyond, more = (each.get("allowed", {}) for each in (old, usage))
    both = beyond.keys() & more.keys()
    allowed = {scope: min(beyond[scope], more[scope], key=Decimal) for scope in both}
    undone = add_tokens(old.get("undone", {}), usage.get("thread", {}))
    undone = add_tokens(undone, old.get("thread", {}), -1)
    usage = {**usage, "allowed": allowed, "last": None, "undone": undone}
    plans = [plan for each in (then, outer) if (plan := each.get("approved_plan"))]
    if plans and plans[0] != plans[-1]:
        policies.add(Approvals.MANUAL.value)  # nobody has approved both
    modes = (each.get("mode", deps.catalog.default) for each in (then, outer))
    return {
        "mode": _find_stricter(deps, *modes),
        "approved_plan": plans[-1] if plans else None,
        "limit": _find_stricter(deps, then.get("limit"), {**now, **host_changes}.get("limit")),
        "approvals": max(policies, key=lambda policy: policy == Approvals.MANUAL),
        "remembered": [each for each in then.get("remembered", ()) if each["id"] in known],
        "facts": _compare_facts(then.get("facts", {}), now.get("facts", {})),
        REVISION: host_changes.get(REVISION, now.get(REVISION, {})),
        "usage": {"__overwrite__": usage},
        "phase": Phase.IDLE.value,
        "switch": None,
        "asked": None,
        "due_calls": [],
    }


def _find_stricter(deps: AgentDeps, then: str | None, now: str | None) -> str | None:
    """The mode, or limit, of now, unless that of then is within it; None is no limit."""
    if then is None or now is None:
        return now if then is None else then
    is_known = then in deps.catalog and now in deps.catalog
    return then if is_known and not deps.find_limit_problem(deps.catalog[now], then) else now


def _compare_facts(then: StateValues, now: StateValues) -> dict[str, object]:
    """What is so then and now; what is not, nobody knows until a call decides it."""
    facts: dict[str, object] = {}
    for scope in ("mode", "conversation", "workspace"):
        before, after = {*then.get(scope, ())}, {*now.get(scope, ())}
        unknown = {UNKNOWN + name.removeprefix(UNKNOWN) for name in before ^ after}
        facts[scope] = sorted(before & after | unknown)
    return {**now, **then, **facts}
