"""``Thread``: one conversation with the agent, in this process or on a server, and its runs."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import httpx
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command, Interrupt, StateSnapshot, StreamMode
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, NotFoundError

from modeshift.calls.remembered import list_remembered, put_settings
from modeshift.events import RunEvent, read_events, read_messages
from modeshift.messages.repair import remove_marks
from modeshift.modes.errors import InvalidInputError, ProviderError
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.checks import check_settings
from modeshift.threads.compiled import Agent
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import Mailbox, StateValues, read_host_changes
from modeshift.threads.state import Remembered
from modeshift.turns.undo import LAST, Undo, UndoPreview

GivenDecision = JsonObject
APPROVE: GivenDecision = {"type": "approve"}
REJECT: GivenDecision = {"type": "reject"}


def edit(name: str, **args: object) -> GivenDecision:
    """The decision to run the tool with other arguments."""
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


STREAMS: tuple[StreamMode, ...] = ("messages", "updates", "custom")
MAX_TITLE = 80
"""Characters."""


@dataclass(frozen=True)
class Run:
    """A run of a thread, which begins when its events are asked for, or its end is awaited."""

    events: Callable[[], AsyncGenerator[RunEvent]]
    """Begins the run; closing the generator stops it."""

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        """Begin the run, and iterate over its events. Raises ``UserError``."""
        return self.events()

    def __await__(self) -> Generator[object, None, Interrupt | None]:
        """Wait for the end; returns the question that waits then, if any. Raises ``UserError``."""
        return self._end().__await__()

    async def _end(self) -> Interrupt | None:
        question = None
        async for event in self:
            question = event if isinstance(event, Interrupt) else None
        return question


@dataclass(frozen=True)
class Thread:
    """One conversation; the methods raise ``UserError``, which says what to do."""

    config: RunnableConfig
    """LangGraph's config with the thread's id, for each run and for the graph's own methods."""
    load: Callable[[], Awaitable[Agent]]
    """Loads the agent, as the clone's files are now."""
    server: RemoteGraph | None = None
    """The server that has the thread; None for this process."""
    streams: Sequence[StreamMode] = STREAMS
    """LangGraph's streams of which events are made; ``Begun`` needs ``tasks``, in this process."""
    running: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """The runs of this process, each with its thread's id."""

    @property
    def id(self) -> str:
        """The thread's id."""
        return str(self.config["configurable"]["thread_id"])

    def say(self, text: str, **host: object) -> Run:
        """Say something as the user; ``host`` is the rest of the input, such as ``mode``."""
        return self.run({"messages": [{"role": "user", "content": text}], **host})

    def answer(self, question: Interrupt | None, decisions: Sequence[GivenDecision]) -> Run:
        """Answer this question, and no other, with a decision for each of its action requests.

        Raises ``InvalidInputError`` for None, which is what stands for no question.
        """
        if question is None:
            raise InvalidInputError("there is no question to answer: the thread waits for nobody")
        answer = {"decisions": list(decisions), "question": question.value["question"]}
        command: Command[str] = Command(resume={question.id: answer})
        return Run(lambda: self._drive(command, question))

    def go_on(self) -> Run:
        """Go on with a turn that was cut off."""
        return self.run(None)

    def run(self, input: object) -> Run:
        """Run the thread with any input that LangGraph takes."""
        return Run(lambda: self._drive(input))

    async def stop(self) -> None:
        """Stop the thread's run, as a person does; what it has begun may still have an effect."""
        for task, id in self.running.items():
            if id == self.id:
                task.cancel()
        if self.server is not None:
            with self._explain():
                runs = self._client.runs
                for run in await runs.list(self.id):
                    if run["status"] not in ("pending", "running"):
                        continue
                    try:
                        await runs.cancel(self.id, run["run_id"], wait=True)
                    except httpx.HTTPStatusError as error:  # not the SDK's own where it waits
                        if error.response.status_code != httpx.codes.NOT_FOUND:
                            raise  # else it has ended meanwhile: its stream is closed, too

    async def set(self, **settings: object) -> None:
        """Set ``mode``, ``limit`` or ``approvals`` from the next step on, in any process.

        Or ``forget`` what is ``remembered``, by ids or ``all``.
        """
        if self.server is not None:
            await self.create()
            with self._explain():
                await self._client.http.patch(f"/threads/{self.id}/mode", json=settings)
            return
        agent = await self.load()
        checked = check_settings(agent.live.deps, settings)
        await put_settings(Mailbox(agent.store), self.id, checked, self._read_news)

    async def undo(self, message: str = LAST, digest: str | None = None) -> UndoPreview:
        """Show what going back to before a message does; do it, with the digest of what was shown.

        ``message`` is an id, ``last``, or ``back``: to before the last undo.
        """
        if self.server is None:
            agent = await self.load()
            return await Undo(agent.live.deps, agent, self.id, agent.store).run(message, digest)
        path, asked, http = f"/threads/{self.id}/undo", {"message": message}, self._client.http
        with self._explain():
            if digest is None:
                return dict(await http.get(path, params=asked))
            return dict(await http.post(path, json={**asked, "digest": digest}))

    async def remembered(self) -> list[Remembered]:
        """The calls to which a person has said "always": they run unasked from the next step on."""
        if self.server is None:
            return list_remembered(*await self._read_news())
        with self._explain():
            try:
                answer = await self._client.http.get(f"/threads/{self.id}/mode")
            except NotFoundError:
                return []
        return list(answer["remembered"])

    async def _read_news(self) -> tuple[StateValues, StateValues]:
        """The state, and the host's settings that it does not have yet."""
        state, store = (await self.state()).values, (await self.load()).store
        return state, await read_host_changes(store, self.id, state)

    async def state(self) -> StateSnapshot:
        """The state as LangGraph has it; without values if there is no such thread."""
        with self._explain():
            try:
                state = await (self.server or await self.load()).aget_state(self.config)
            except (NotFoundError, TypeError) as error:
                # RemoteGraph raises a TypeError for a thread without a checkpoint.
                if self.server is None and isinstance(error, TypeError):
                    raise
                return StateSnapshot({}, (), self.config, None, None, None, (), ())
        values = dict(state.values or {})
        if "messages" in values:
            values["messages"] = read_messages(values["messages"])
        return state._replace(values=values)

    async def history(self) -> list[AnyMessage]:
        """The messages that the model is shown."""
        return list((await self.state()).values.get("messages", []))

    async def question(self) -> Interrupt | None:
        """The question that waits for a person, if any."""
        return next(iter((await self.state()).interrupts), None)

    async def deps(self) -> AgentDeps:
        """The modes, models and approvals to choose from; for a server, those of this clone."""
        return (await self.load()).live.deps

    def _explain(self) -> AbstractContextManager[None]:
        return nullcontext() if self.server is None else explain_errors()

    @property
    def _client(self) -> LangGraphClient:
        return self.server.client  # type: ignore[union-attr,return-value]  # it is asked before

    async def create(self, **given: Any) -> None:
        """Create the thread on the server if it is not there, with what the SDK takes."""
        with self._explain():
            await self._client.threads.create(thread_id=self.id, if_exists="do_nothing", **given)

    async def _drive(
        self, input: object, answered: Interrupt | None = None
    ) -> AsyncGenerator[RunEvent]:
        """Run a task of its own, so that it can be stopped, and yield its events."""
        if answered is not None:  # LangGraph silently ignores an answer that nothing waits for
            now = await self.question()
            if now is None or now.id != answered.id:
                raise InvalidInputError(
                    "this question is no longer open: it was answered, or taken back; look at the "
                    "thread's question again"
                )
        events = asyncio.Queue[RunEvent | None]()

        async def pass_on() -> None:
            try:
                async with aclosing(self._stream(input)) as stream:
                    async for event in stream:
                        events.put_nowait(event)
                        await events.join()  # no step begins before the caller has seen the event
            finally:
                events.put_nowait(None)

        task = asyncio.create_task(pass_on())
        self.running[task] = self.id
        try:
            while (event := await events.get()) is not None:
                yield event
                events.task_done()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()
        finally:
            del self.running[task]
            task.cancel()
            await asyncio.wait({task})

    async def _stream(self, input: object) -> AsyncGenerator[RunEvent]:
        with self._explain():
            graph: Any = self.server or await self.load()
            options = {"durability": "sync"}
            if self.server is not None:
                options = {"on_disconnect": "cancel"}
                if isinstance(input, dict) and "messages" in input:
                    title = input["messages"][0]["content"].split("\n")[0][:MAX_TITLE]
                    await self.create(metadata={"title": title})  # as the page does
            chunks = graph.astream(input, self.config, stream_mode=list(self.streams), **options)
            async with aclosing(chunks):
                async for kind, part, *_ in chunks:
                    for event in read_events(kind, part):
                        yield event


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn a server's errors into ``UserError``, which say what to do."""
    try:
        yield
    except RemoteException as error:
        content = error.args[0] if error.args else ""
        message = content.get("message", content) if isinstance(content, dict) else content
        raise ProviderError(str(message)) from error
    except httpx.TransportError as error:
        raise InvalidInputError(
            "the server does not answer; start it again with make dev, or leave and come back "
            "without it"
        ) from error
    except APIError as error:
        raise InvalidInputError(f"the server refuses: {error}") from error


def find_title(values: StateValues) -> str:
    """The first line of what a person said first; empty before that."""
    outer = (values.get("parents") or [values])[0]
    for given in outer.get("messages") or []:
        (message,) = read_messages([given])
        if message.type == "human":
            return remove_marks(message.text).split("\n")[0][:MAX_TITLE]
    return ""
