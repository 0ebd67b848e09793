"""``DueCall``: a call that is due, judged again just before it runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import Runtime

from modeshift.calls.contents import digest_contents, find_begun, foresee, get_key, renew_approvals
from modeshift.calls.judging import CallContext, Judged, judge
from modeshift.calls.running import describe_call, name_call, run_tool
from modeshift.messages.repair import CHANGED, VOID, build_not_run_result, mark_edited, truncate
from modeshift.modes.errors import NodeError, StorageError, ToolFailedError
from modeshift.modes.facts import Done
from modeshift.modes.plain_data import JsonObject
from modeshift.observing import Report, observe
from modeshift.threads.audit import append_entry, digest_result
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import follow
from modeshift.threads.journal import BegunCall, FileDigests, RunningCall
from modeshift.threads.mailbox import read_host_changes
from modeshift.threads.state import ActTask, Planned, Update
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.workspace_lock import workspace_lock
from modeshift.tools.workspace.undo_log import CallRecord, current_record


@dataclass(frozen=True)
class _Started:
    """A call that has begun, and may run once."""

    calling: Calling
    running: RunningCall | None = None
    """The call in the journal; None for one that changes nothing."""
    before: FileDigests = field(default_factory=dict)
    """The digests of the files that it edits."""


@dataclass(eq=False)
class DueCall:
    """One call of the batch under way. A failure is an answer to the model, never the run's end."""

    _deps: AgentDeps
    task: ActTask
    _config: RunnableConfig
    _runtime: Runtime[None]
    _thread: str
    _judged: Judged
    _context: CallContext
    refusal: str | None
    """Why it must not run; None if it may."""
    _stage: _Started | BegunCall | None
    """How far the call is, by the journal; None if it has not begun, or certainly did nothing."""
    ends_turn: bool = field(default=False, init=False)
    """Whether it has run and the turn is over with it."""
    result: Update | None = field(default=None, init=False)
    """The update that ``run`` or ``not_run`` has made."""

    def _emit(self, text: str) -> None:
        """Show it on the stream ``custom``."""
        written = {"type": "tool_output", "tool_call_id": self._judged.id, "text": text}
        self._runtime.stream_writer(written)

    def not_run(self, why: str) -> Update:
        """The update that answers the call without running it; says if it may have run before."""
        begun = self._stage if isinstance(self._stage, BegunCall) else None
        with self._observe() as report:
            report["state"] = "refused" if begun is None else begun.state
        if begun is None:
            self.result = Update(messages=[build_not_run_result(self._judged.call, truncate(why))])
        else:
            message = begun.build_result(self._judged.call)
            self.result = self._settle(message, {}, begun.before, begun.after)
            self.result["facts"] = follow(self._deps, self.task.get("facts", {}), begun.done)
        return self.result

    @asynccontextmanager
    async def started(self) -> AsyncIterator[str | None]:
        """Record the call as begun; yields why it must not run, or None if it may."""
        judged, verdict, seat = self._judged, self._judged.verdict, self._context.seat
        changes_the_world = judged.effect.changes_the_world and not verdict.changes_nothing
        background, is_held = self._deps.started_calls.background, judged.writable == ()
        calling = Calling(
            edits_freely=seat.edit_restriction is None and not (verdict.changes_nothing or is_held),
            is_read_only=verdict.is_read_only,
            is_closed_off=verdict.is_closed_off,
            emit=self._emit,
            call_id=judged.id,
            commands=background.of(self._thread, seat.environment),
            writable=judged.writable,
        )
        async with AsyncExitStack() as stack:
            # First: while it waits it has not begun.
            if changes_the_world and self._needs_lock(calling):
                root = self._deps.toolbox.workspace.root
                with suppress(ToolFailedError, OSError):  # the command itself says so
                    await stack.enter_async_context(workspace_lock(root, self._emit))
                    calling = replace(calling, lock=asyncio.Lock())
            try:
                if changes_the_world:
                    yield await self._begin(calling, stack)
                elif await self._has_host_changed():
                    yield CHANGED
                else:
                    self._stage = _Started(calling)
                    yield None
            finally:
                if isinstance(self._stage, _Started):
                    self._stage = None

    def _needs_lock(self, calling: Calling) -> bool:
        """Whether it is to run a command in the sandbox, and not beside the turn."""
        tool, args, commands = self._judged.tool, self._judged.args or {}, calling.commands
        if self._deps.toolbox.sandbox is None or tool is None or not tool.spec.sandboxed:
            return False
        goes_on = args.get("background") or (commands and commands.name_running())
        return not goes_on

    async def _begin(self, calling: Calling, stack: AsyncExitStack) -> str | None:
        """Record the call as begun; why not, if it has begun before or the host has changed."""
        judged, planned, deps = self._judged, self.task["planned"], self._deps
        # Without a key it only read when it was planned.
        key = get_key(planned, self._thread) or judged.digest(
            self._thread, planned.get("message", "")
        )
        before = await digest_contents(deps, judged.edited_paths)
        after = await foresee(deps, judged.edited_paths, judged.args or {})
        done = describe_call(deps, self._context.seat, judged, (), is_success=True)
        journal, config = deps.started_calls.journal, self._config["configurable"]
        hold = journal.hold(self._thread)
        if checkpoint := config.get("checkpoint_map", {}).get(""):
            await hold.wait_for(config[CONFIG_KEY_CHECKPOINTER], checkpoint)
        while (running := await hold.begin(key, judged.call["name"], before, after, done)) is None:
            # Another run has begun it since it was judged here.
            begun = await journal.find(key, partial(digest_contents, deps))
            if begun is not None:
                self._stage = begun
                return begun.build_result(judged.call).text
            await hold.check()
        stack.callback(running.leave)
        # Recorded first: whoever sets something and does not find the call is found here.
        if await self._has_host_changed():
            await running.take_back()
            return CHANGED
        self._stage = _Started(calling, running, before)
        return None

    async def _has_host_changed(self) -> bool:
        return bool(await read_host_changes(self._runtime.store, self._thread, self.task))

    def _observe(self) -> AbstractContextManager[Report]:
        kind = self._judged.effect.shown_as if self._judged.tool else "other"
        return observe("call", effect=kind, tool=self._judged.call["name"])

    async def run(self) -> Update:
        """Run the tool; the update with its result. Raises ``NodeError`` unless it may run now."""
        if self.refusal is not None:
            raise NodeError(f"{self._judged.call['name']} must not run: {self.refusal}")
        if not isinstance(started := self._stage, _Started):
            raise NodeError(f"{self._judged.call['name']} has not been started: see call.started()")
        self._stage = None
        if started.running is not None:
            self._stage = BegunCall.unseen(self._context.seat.mode.slug)
        self.result = await self._run(started)
        return self.result

    async def _run(self, started: _Started) -> Update:
        deps, task, judged = self._deps, self.task, self._judged
        seat, calling, running = self._context.seat, started.calling, started.running
        only_reads = running is None and judged.runs_beside_others
        was_alone = only_reads or not (calling.commands and calling.commands.name_running())
        run = self._run_tool(started)
        with self._observe() as report:
            try:
                message, updates = await (running.keep(run) if running else run)
            except BaseException:
                if running is not None:  # it was stopped, and may have taken effect
                    await asyncio.shield(self._stop(running))
                raise
            report["state"] = "done" if message.status == "success" else "failed"
        approved = task["planned"]["approved"]
        if approved is not None and approved["edited"]:
            mark_edited(message, approved["args"])
        if only_reads:
            return self._settle(message, updates, {}, {})
        done = describe_call(deps, seat, judged, calling.ran, message.status == "success")
        done = replace(done, was_alone=was_alone)
        after = await digest_contents(deps, judged.edited_paths)
        if running is not None:
            # Though the run is cancelled now: it has run.
            await asyncio.shield(self._finish(running, message, after, done))
        update = self._settle(message, updates, started.before, after)
        update["facts"] = follow(deps, self.task.get("facts", {}), done)
        return update

    async def _run_tool(self, started: _Started) -> tuple[ToolMessage, JsonObject]:
        """Run the tool, and note for undo what it changes."""
        judged, calling, running = self._judged, started.calling, started.running
        key = running.key if running else None
        run = partial(run_tool, self._context.seat, judged, calling, self._config, key)
        if running is None or (log := self._deps.undo_log) is None:
            return await run()
        record = CallRecord(log, self._deps.toolbox.workspace, self._thread, name_call(judged))
        looks = judged.effect.runs_programs and calling.edits_freely and calling.lock is not None
        stays, paths = self._find_what_stays(calling), judged.edited_paths
        try:
            await asyncio.to_thread(record.begin, stays, paths, looks=looks)
        except StorageError as error:
            return build_not_run_result(judged.call, str(error)), {}
        token = current_record.set(record)
        try:
            return await run()
        finally:
            current_record.reset(token)
            await asyncio.shield(asyncio.to_thread(record.end, stays))

    def _find_what_stays(self, calling: Calling) -> str:
        """Why undo cannot take back all of the call, but for files it sees; empty if it can."""
        sandbox, effect = self._deps.toolbox.sandbox, self._judged.effect
        if not effect.runs_programs or self._judged.tool is None:
            return "" if self._judged.edited_paths else f"it {effect.does}"
        if sandbox is None or not self._judged.tool.spec.sandboxed:
            return "it ran without a sandbox"
        if calling.lock is None:
            return "it ran in the background"
        return "it could use the network" if sandbox.has_network else ""

    async def _finish(
        self, running: RunningCall, message: ToolMessage, after: FileDigests, done: Done
    ) -> None:
        await running.finish(message, after, done)
        await self.record(running.key, message)

    async def _stop(self, running: RunningCall) -> None:
        await self.record(running.key)
        await running.stop(partial(digest_contents, self._deps))

    async def record(self, key: str, result: ToolMessage | None = None) -> None:
        """Write into the audit that it has ended, or was stopped, unless that is there."""
        entry = {
            "kind": "call",
            **self._context.describe(),
            **self._judged.describe(),
            "message": self.task["planned"].get("message"),
            "approved": self.task["planned"]["approved"] is not None,
            "status": "stopped" if result is None else result.status,
            **({} if result is None else {"result": digest_result(result)}),
        }
        journal, how = self._deps.started_calls.journal, "stopped " if result is None else ""
        await append_entry(journal, self._thread, f"{how}call {key}", entry)

    def _settle(
        self, message: ToolMessage, updates: JsonObject, before: FileDigests, after: FileDigests
    ) -> Update:
        """The update with the result; what else was approved expects the files as they are now."""
        judged, task = self._judged, self.task
        update: Update = {**updates, "messages": [message]}  # type: ignore[typeddict-item]
        if message.status != "success":
            return update
        if after:
            update["written"] = [path for path in task["written"] if path not in after] + [*after]
            due = renew_approvals(task["due_calls"], before, after)
            self.task = {**task, "due_calls": due}
        # Which asks always, so a person has seen it; and so it is in the file.
        if (plan := judged.plan) and after.get(plan["path"]) == plan["digest"]:
            self.task["approved_plan"] = update["approved_plan"] = plan
        if judged.effect.ends_turn:
            update["messages"] = [message, AIMessage(message.text)]
            self.ends_turn = True
        return update


async def judge_due_call(
    deps: AgentDeps, task: ActTask, config: RunnableConfig, runtime: Runtime[None], thread: str
) -> DueCall | None:
    """The call that is due, judged now; None if the run continues with other code or modes."""
    if ActTask.__required_keys__ - task.keys() or task["mode"] not in deps.catalog:
        return None
    planned, approved = task["planned"], task["planned"]["approved"]
    call = planned["call"]
    if approved is not None:
        call = ToolCall(name=call["name"], args=approved["args"], id=call["id"])
    context = CallContext.of(deps, task)
    judged = await judge(deps, context, call)
    refusal, begun = await _refuse(deps, planned, judged, thread), None
    # Behind the verdict: it may be for what the call itself has done, in a run that was cut off or
    # in another one, until now.
    if judged.tool is None or judged.effect.changes_the_world:
        begun = await find_begun(deps, planned, thread, task["mode"])
    if begun is not None:
        refusal = begun.build_result(judged.call).text
    due = DueCall(deps, task, config, runtime, thread, judged, context, refusal, begun)
    # The process may have died between the end of the call and its entry.
    if begun is not None and begun.result is not None and (key := get_key(planned, thread)):
        await due.record(key, begun.result)
    return due


async def _refuse(deps: AgentDeps, planned: Planned, judged: Judged, thread: str) -> str | None:
    """Why the call must not run; None if it may."""
    approved, verdict = planned["approved"], judged.verdict
    if planned["denied"] is not None:
        return planned["denied"]
    if approved is not None:
        # It must be the call that a person approved, on files that are as they were then.
        is_same = approved["digest"] == judged.digest(thread, planned.get("message", ""))
        contents = await digest_contents(deps, judged.edited_paths)
        if not is_same or approved.get("contents") != contents:
            return VOID
    if verdict.kind == "deny":
        return verdict.refusal
    if verdict.kind == "ask" and approved is None:
        return "Not run: nobody has approved this call."
    return None
