"""A process that works on threads until it is killed, and goes on with those of another one."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command
from typing_extensions import override

from graph.agent import build
from modeshift import Agent
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.storage.opening import open_database
from modeshift.storage.postgres_threads import PostgresSaver
from modeshift.storage.threads import WholeWrites, open_saver, prepare_tables
from modeshift.threads import journal as journal_module
from modeshift.threads.deps import StartedCalls
from modeshift.threads.journal import Hold, Journal, RunningCall
from modeshift.tools.tool import Tool
from modeshift.tools.workspace import atomic_file
from tests.harness.conversation import make_agent

KINDS = ("command", "edit", "edits", "unasked edit", "unasked")
"""Of threads: what the model calls in them, and whether a person is asked."""
POINTS = ("input", "said", "decided", "started", "edit", "edited", "outcome", "finished")
"""Where a process kills itself, on purpose."""


class Place:
    """Where the threads are."""

    def __init__(self, folder: Path, url: str, lease: float) -> None:
        self.folder, self.url, self.lease = folder, url, lease
        self.workspace, self.file = folder / "workspace", folder / "threads.sqlite"
        self.log = self.workspace / "log"
        """A line for each effect of a tool or command, with the thread's name."""
        self.finished = folder / "finished"
        """A line for each call whose result the journal has, with the call's id."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[BaseCheckpointSaver[Any], Journal]]:
        database = open_database(self.url, self.file, timeout=5)
        try:
            await prepare_tables(database)
            async with open_saver(database) as saver:
                yield saver, Journal(database, self.file, self.lease)
        finally:  # a pool that is cancelled while it connects would never end
            await database.close()


class NotedCall(RunningCall):
    """Notes in a file that its result is stored."""

    file: Path

    @override
    async def finish(self, result: ToolMessage, *given: Any) -> None:
        await super().finish(result, *given)
        with self.file.open("a") as file:
            file.write(f"{result.tool_call_id}\n")


def find_kind(thread: str) -> str:
    return KINDS[int(thread.partition("-")[2]) % len(KINDS)]


def list_calls(thread: str) -> list[dict[str, Any]]:
    """What the model calls in a thread; each call has an effect that shows if it comes twice."""
    edit = {"path": thread, "edits": [{"old": "END", "new": "+END"}]}
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "command": [("execute_command", {"command": f"echo {thread} >> log"})],
        "edit": [("edit_file", edit)],
        "edits": [("edit_file", edit), ("execute_command", {"command": f"echo {thread} >> log"})],
        "unasked edit": [("edit_file", edit)],
        "unasked": [("append", {"line": thread})],
    }
    made = enumerate(calls[find_kind(thread)])
    return [{"name": name, "args": args, "id": f"{thread}-{n}"} for n, (name, args) in made]


class Caller(BaseChatModel):
    """Calls the thread's tools once, and is done; remembers nothing itself."""

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind()

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = AIMessage("done")
        if not any(isinstance(message, AIMessage) and message.tool_calls for message in messages):
            said = " ".join(
                message.text for message in messages if isinstance(message, HumanMessage)
            )
            answer = AIMessage("", tool_calls=list_calls(re.findall(r"do (\w-\d+)", said)[0]))
        return ChatResult(generations=[ChatGeneration(message=answer)])


def make(place: Place, saver: BaseCheckpointSaver[Any], journal: Journal) -> Agent:
    async def append(line: str) -> str:
        """Append a line to the log.

        Args:
            line: The line.
        """
        with place.log.open("a") as log:
            log.write(f"{line}\n")
        return f"appended {line}"

    NotedCall.file = place.finished
    journal_module.RunningCall = NotedCall  # type: ignore[misc]  # not before a fault is planted
    started = StartedCalls(journal=journal)
    agent = make_agent(place.workspace, Caller(), saver=saver, started_calls=started)
    deps = agent.live.deps
    tools = [Tool.of(append, "edit").in_group("edit")]
    return build(replace(deps, toolbox=deps.toolbox.with_tools(tools)), saver)


async def begin(agent: Agent, thread: str) -> RunnableConfig:
    """Begin the thread's run, as a server's queue does once more after a crash."""
    config: RunnableConfig = {
        "configurable": {"thread_id": thread},
        "metadata": {"run_id": f"run of {thread}"},
    }
    approvals = "auto" if find_kind(thread).startswith("unasked") else "manual"
    message = {"role": "user", "content": f"do {thread}"}
    said: Any = {"messages": [message], "mode": "code", "approvals": approvals}
    await agent.ainvoke(said, config)
    return config


async def work(agent: Agent, thread: str, is_relieved: Callable[[], bool]) -> None:
    """Begin the thread's run, and approve until it has ended, or another process has it."""
    config = await begin(agent, thread)
    while not is_relieved() and (
        (state := await agent.aget_state(config)).next or state.interrupts
    ):
        if state.interrupts:
            (question,) = state.interrupts
            await decide(agent, config, question.value)
        else:
            await agent.ainvoke(None, config)


async def decide(agent: Agent, config: RunnableConfig, asked: Any) -> None:
    decisions = [{"type": "approve"} for _ in asked["action_requests"]]
    answer = {"decisions": decisions, "question": asked["question"]}
    # Of a run of its own, as on a server: else LangGraph itself would know the first one's input.
    run = {"run_id": f"answer of {asked['question']}"}
    await agent.ainvoke(Command(resume=answer), {**config, "metadata": run})


def kill_at(point: str, number: int) -> None:
    """Have this process kill itself when it comes to the point for the ``number``-th time."""
    owners: tuple[Any, ...]
    owners, name, is_before = {
        "input": ((Journal,), "take_input", False),
        "said": ((WholeWrites, PostgresSaver), "aput_writes", False),
        "decided": ((Journal,), "decide", False),
        "started": ((Hold,), "begin", False),
        "edit": ((atomic_file,), "replace_file", True),
        "edited": ((atomic_file,), "replace_file", False),
        "outcome": ((NotedCall,), "finish", True),
        "finished": ((NotedCall,), "finish", False),
    }[point]
    count = 0

    def pass_by(*, is_there: bool) -> None:
        nonlocal count
        count += is_there
        if is_there and count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        async def of_database(*args: Any, **named: Any) -> Any:
            pass_by(is_there=is_before)
            result = await real(*args, **named)
            pass_by(is_there=not is_before)
            return result

        def of_file(*args: Any) -> Any:
            pass_by(is_there=is_before)
            result = real(*args)
            pass_by(is_there=not is_before)
            return result

        return of_database if iscoroutinefunction(real) else of_file

    for owner in owners:
        setattr(owner, name, wrap(getattr(owner, name)))


async def run(
    place: Place,
    threads: Sequence[str],
    report: Callable[[str], None],
    is_relieved: Callable[[], bool] = lambda: False,
) -> None:
    """``is_relieved``: whether a queue has given what is left to another process."""
    async with place.open() as (saver, journal):
        agent = make(place, saver, journal)
        for thread in threads:
            for _ in range(20):
                if is_relieved():
                    return
                try:
                    await work(agent, thread, is_relieved)
                    break
                except InvalidInputError as error:  # another process goes on with it
                    sys.stderr.write(f"{thread}: {error}\n")
                    break
                except (StorageError, OSError) as error:  # another program holds the database
                    sys.stderr.write(f"{thread}: {error}\n")
                    await asyncio.sleep(0.1)
                except Exception as error:
                    if "locked" not in str(error):  # the checkpointer's own words
                        raise
                    await asyncio.sleep(0.1)
            report(thread)


async def resume_at(place: Place, threads: Sequence[str], starts: Sequence[float]) -> None:
    """Approve what waits in each thread, at a moment that two processes have agreed upon."""
    async with place.open() as (saver, journal):
        agent = make(place, saver, journal)
        for thread, start in zip(threads, starts, strict=True):
            config: RunnableConfig = {"configurable": {"thread_id": thread}}
            state = await agent.aget_state(config)
            time.sleep(max(0, start - time.time()))  # noqa: ASYNC251  # to the same millisecond
            if state.interrupts:
                with suppress(InvalidInputError):  # the other one goes on with it
                    await decide(agent, config, state.interrupts[0].value)
