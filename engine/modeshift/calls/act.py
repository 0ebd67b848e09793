"""``DueCall``: a call that is due, judged again just before it runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from modeshift.calls.contents import digest_contents, foresee, renew_approvals
from modeshift.calls.judging import CallContext, Judged, get_key, judge
from modeshift.calls.turn_end import end_turn
from modeshift.messages.repair import (
    CHANGED,
    MAX_RESULT_CHARACTERS,
    UNKNOWN,
    VOID,
    build_not_run_result,
    describe_failure,
    mark_as_data,
    mark_edited,
    truncate,
)
from modeshift.modes.choice import Seen, choose
from modeshift.modes.errors import NodeError, ToolFailedError
from modeshift.modes.facts import Done, end_unseen
from modeshift.modes.machine import Configuration
from modeshift.modes.phases import Phase
from modeshift.observing import Report, observe
from modeshift.threads.deps import AgentDeps
from modeshift.threads.facts import follow
from modeshift.threads.journal import BegunCall, FileDigests, Journal
from modeshift.threads.mailbox import read_host_changes
from modeshift.threads.routing import get_thread, next_step, sets_only_approvals
from modeshift.threads.seats import Seat
from modeshift.threads.state import ActTask, Facts, Planned, State, Update
from modeshift.tools.network import using_key
from modeshift.tools.processes.background import Calling, Ran, current_calling
from modeshift.tools.processes.workspace_lock import workspace_lock


async def run_tool(
    seat: Seat, judged: Judged, context: Calling, config: RunnableConfig
) -> tuple[ToolMessage, dict[str, Any]]:
    """The tool's message, and its state updates if its effect has ``updates_state``.

    A failure is a message too, with ``status="error"``.
    """
    assert judged.tool is not None
    id = judged.id
    # As many characters as the window has tokens: a quarter of it, at four letters to a token.
    window = seat.model.window or MAX_RESULT_CHARACTERS
    max_characters = min(MAX_RESULT_CHARACTERS, window)
    # With paths and URL as they were resolved and judged, not as they may resolve by now.
    args = {**judged.call["args"], **judged.resolved}
    call = ToolCall(name=judged.call["name"], args=args, id=id, type="tool_call")
    before, ran = current_calling.set(context), context.ran
    try:
        message = await judged.tool.runnable.ainvoke(call, config)
    except Exception as error:  # noqa: BLE001  # whatever a tool of the user's raises
        text = describe_failure(error, _name_source(judged), id, max_characters)
        return build_not_run_result(judged.call, text), {}
    finally:
        current_calling.reset(before)
    assert isinstance(message, ToolMessage)
    blocks = message.content if isinstance(message.content, list) else []
    images = [block for block in blocks if isinstance(block, dict) and block.get("type") == "image"]
    message.content = truncate(message.text, max_characters)
    updates: dict[str, Any] = {}
    if ran and message.artifact is None:
        message.artifact = {"exit_code": ran[-1].exit_code}
    if judged.effect.updates_state:
        updates, message.artifact = message.artifact, None
    elif judged.effect.result_is_data:
        text = mark_as_data(message.content, _name_source(judged), id)
        message.content = [{"type": "text", "text": text}, *images] if images else text
    return message, updates


def _name_source(judged: Judged) -> str:
    """The tool with its file, command or address."""
    assert judged.tool is not None
    spec = judged.tool.spec
    names = (spec.command, spec.url, *spec.paths)
    values = [judged.call["args"].get(name) for name in names if name is not None]
    return " ".join([spec.name, *(str(value) for value in values if value is not None)])


def describe_call(
    deps: AgentDeps, seat: Seat, judged: Judged, ran: Sequence[Ran], is_success: bool
) -> Done:
    """What facts can follow from: a call that has run, or may have; of commands, ``ran``."""
    assert judged.tool is not None
    spec, effect = judged.tool.spec, judged.effect
    is_held = spec.sandboxed and (judged.verdict.is_read_only or seat.edit_restriction is not None)
    written = judged.edited_paths if is_success else ()
    grant = seat.mode.grant(spec.group) if written and spec.group is not None else None
    last = ran[-1] if len(ran) == 1 else None
    return Done(
        tool=spec.name,
        mode=seat.mode.slug,
        is_success=is_success,
        written=written,
        in_limit=written if grant is not None and grant.file_regex is not None else (),
        may_have_written=effect.changes_the_world
        and not effect.stays_outside
        and not (effect.runs_programs and is_held),
        line=last.line if last and not last.goes_on else None,
        folder=last.folder if last else ".",
        exit_code=last.exit_code if last else None,
        runs_tests=is_test_run(deps, last) if effect.runs_programs else False,
    )


def is_test_run(deps: AgentDeps, ran: Ran | None) -> bool:
    """Whether it is the owner's test command, word for word, in the workspace's own folder."""
    command = deps.tests and deps.tests.command
    return ran is not None and (ran.line, ran.folder) == (command, ".")


class DueCall:
    """One call of the batch under way. A failure is an answer to the model, never the run's end."""

    def __init__(
        self,
        deps: AgentDeps,
        task: ActTask,
        config: RunnableConfig,
        judged: Judged,
        context: CallContext,
        runtime: Runtime[None],
    ) -> None:
        self._deps = deps
        self.task = task
        self._config = config
        self._judged = judged
        self._context = context
        self._runtime = runtime
        self._thread = get_thread(config)
        self._has_started = False
        self._may_have_run = False
        """Whether it may have changed something."""
        self.refusal: str | None = None
        """Why it must not run; None if it may."""
        self.ends_turn = False
        """Whether it has run and the turn is over with it."""
        self.result: Update | None = None
        """What ``run`` or ``not_run`` gave."""
        self._key = get_key(task["planned"], self._thread)
        self._begun: BegunCall | None = None
        """As it ended when it ran before."""
        self._before: FileDigests = {}
        """The digests of the files that it edits."""
        is_read_only = judged.verdict.is_read_only
        self._changes_the_world = judged.effect.changes_the_world and not is_read_only
        self._calling = Calling(
            edits_freely=context.seat.edit_restriction is None and not is_read_only,
            is_read_only=is_read_only,
            emit=self._emit,
            call_id=judged.id,
            commands=deps.started_calls.background.of(self._thread, context.seat.environment),
        )

    def _emit(self, text: str) -> None:
        """Show it on the stream ``custom``."""
        written = {"type": "tool_output", "tool_call_id": self._judged.id, "text": text}
        self._runtime.stream_writer(written)

    async def look_up(self) -> str | None:
        """Why it must not start: it has before, and ``not_run`` gives what came of it then."""
        judged, planned, journal = self._judged, self.task["planned"], self._journal
        if judged.tool is not None and not judged.effect.changes_the_world:
            return None
        if planned.get("journal") != journal.mark(self._thread):
            return UNKNOWN
        if self._key is None:
            return None
        self._begun = await journal.find(self._key, partial(digest_contents, self._deps))
        return None if self._begun is None else self._begun.build_result(judged.call).text

    def not_run(self, why: str) -> Update:
        """The update that answers it without running it; of one that may have run, says that."""
        why = UNKNOWN if self._may_have_run else why
        begun, state = self._begun, "unknown" if why == UNKNOWN else "refused"
        with self._observe() as report:
            report["state"] = state if begun is None else begun.state
        if begun is None:
            self.result = Update(messages=[build_not_run_result(self._judged.call, truncate(why))])
            if why == UNKNOWN:
                self.result["facts"] = self._follow(end_unseen(self._context.seat.mode.slug))
        else:
            message = begun.build_result(self._judged.call)
            self.result = self._settle(message, {}, begun.before, begun.after)
            self.result["facts"] = self._follow(begun.done)
        return self.result

    @asynccontextmanager
    async def started(self) -> AsyncIterator[str | None]:
        """Record the call as begun; gives why it must not, as it may have run, say."""
        async with AsyncExitStack() as stack:
            # First: while it waits it has not begun.
            if self._changes_the_world and self._needs_lock():
                root = self._deps.toolbox.workspace.root
                with suppress(ToolFailedError, OSError):  # the command itself says so
                    await stack.enter_async_context(workspace_lock(root, self._emit))
                    self._calling = replace(self._calling, lock=asyncio.Lock())
            try:
                problem = await self._begin()
                self._has_started = problem is None
                yield problem
            finally:
                self._has_started = False
                if self._key is not None:
                    self._journal.leave(self._key)

    def _needs_lock(self) -> bool:
        """Whether it is to run a command in the sandbox, and not beside the turn."""
        judged, commands = self._judged, self._calling.commands
        spec = None if judged.tool is None else judged.tool.spec
        if self._deps.toolbox.sandbox is None or spec is None or not spec.sandboxed:
            return False
        goes_on = (judged.args or {}).get("background") or (commands and commands.name_running())
        return not goes_on

    @property
    def _journal(self) -> Journal:
        return self._deps.started_calls.journal

    async def _begin(self) -> str | None:
        """Record it as begun; why it must not, if it has before or the host has changed."""
        judged, name = self._judged, self._judged.call["name"]
        if not self._changes_the_world:
            self._key = None
            return CHANGED if await self._has_host_changed() else None
        if self._key is None:  # it only read when it was planned
            self._key = judged.digest(self._thread, self.task["planned"].get("message", ""))
        self._before = await digest_contents(self._deps, judged.edited_paths)
        after = await foresee(self._deps, judged.edited_paths, judged.args or {})
        done = describe_call(self._deps, self._context.seat, judged, (), is_success=True)
        config = self._config["configurable"]
        if checkpoint := config.get("checkpoint_map", {}).get(""):
            await self._journal.wait_for(config[CONFIG_KEY_CHECKPOINTER], self._thread, checkpoint)
        files = self._before, after
        while not await self._journal.start(self._key, self._thread, name, *files, done):
            if (problem := await self.look_up()) is not None:
                return problem
            await self._journal.check_holder(self._thread)
        # Recorded first: whoever sets something and does not find the call is found here.
        if await self._has_host_changed():
            await self._journal.take_back(self._key)
            return CHANGED
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
        if not self._has_started:
            raise NodeError(f"{self._judged.call['name']} has not been started: see call.started()")
        self._has_started = False
        self._may_have_run = self._key is not None
        self.result = await self._run()
        return self.result

    async def _run(self) -> Update:
        deps, task, judged = self._deps, self.task, self._judged
        seat, commands = self._context.seat, self._calling.commands
        was_alone = not (commands and commands.name_running())
        run = run_tool(seat, judged, self._calling, self._config)
        with self._observe() as report:
            if self._key is None:
                message, updates = await run
            else:
                with using_key(self._key):
                    message, updates = await self._journal.keep(self._key, run)
            report["state"] = "done" if message.status == "success" else "failed"
        done = describe_call(deps, seat, judged, self._calling.ran, message.status == "success")
        done = replace(done, was_alone=was_alone)
        approved = task["planned"]["approved"]
        if approved is not None and approved["edited"]:
            mark_edited(message, approved["args"])
        paths = judged.edited_paths
        after = await digest_contents(deps, paths) if paths else {}
        if self._key is not None:
            # Though the run is cancelled now: it has run.
            await asyncio.shield(self._journal.finish(self._key, message, after, done))
        update = self._settle(message, updates, self._before, after)
        if not judged.runs_beside_others:
            update["facts"] = self._follow(done)
        return update

    def _follow(self, done: Done) -> Facts:
        """The facts after the call."""
        return follow(self._deps, self.task.get("facts", {}), done)

    def _settle(
        self, message: ToolMessage, updates: dict[str, Any], before: FileDigests, after: FileDigests
    ) -> Update:
        """The update with the result; what else was approved expects the files as they are now."""
        judged, task = self._judged, self.task
        update: Update = {**updates, "messages": [message]}  # type: ignore[typeddict-item]
        if message.status != "success":
            return update
        if after:
            update["written"] = list(dict.fromkeys([*task["written"], *after]))
            self.task = {**task, "plan": renew_approvals(task["plan"], before, after)}
        if judged.effect.ends_turn:
            update["messages"] = [message, AIMessage(message.text)]
            self.ends_turn = True
        return update


async def judge_due_call(
    deps: AgentDeps, task: ActTask, config: RunnableConfig, runtime: Runtime[None]
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
    due = DueCall(deps, task, config, judged, context, runtime)
    # Before its approval: a call that was cut off may have changed what that was given for.
    due.refusal = await due.look_up()
    if due.refusal is None and (refusal := await _refuse(deps, planned, judged, due._thread)):
        due.refusal = await due.look_up() or refusal  # it may be for what it has just done
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


async def move_on(
    deps: AgentDeps,
    task: ActTask,
    update: Update,
    thread: str,
    store: BaseStore | None,
    *,
    is_done: bool,
) -> Command[Any]:
    """Advance the state machine and the plan, once per batch.

    With a ``Command``: an edge is evaluated once for each parallel task, none of which sees others.
    """
    if not task["is_last"]:
        return Command(update=update)
    host_changes = await read_host_changes(store, thread, task)
    if host_changes and not sets_only_approvals(host_changes):
        # What is left of the plan was judged before: ``intake`` answers it.
        return Command(update={**update, "plan": []}, goto="intake")
    seen = Seen(
        has_calls=bool(task["plan"]),
        has_switch=bool(task["switch"]),
        in_subtask=bool(task.get("subtask")),
        is_done=is_done,
    )
    now = deps.machine.send_all(Configuration(task["mode"], "acting"), choose(Phase.ACTING, seen))
    after_call = cast("State", {**task, **update})
    ended = end_turn(deps, after_call, now) if now.phase == Phase.IDLE else Update()
    update = {**update, **ended, "phase": now.phase, "plan": task["plan"]}
    after: ActTask = {
        **task,
        "phase": now.phase,
        "written": update.get("written", task["written"]),
        "facts": update.get("facts", task.get("facts", {})),
    }
    return Command(update=update, goto="intake" if host_changes else next_step(deps, after))
