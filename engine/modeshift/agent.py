"""``open_agent`` gives each ``Thread`` of the clone's agent, in this process or on a server."""

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
from contextlib import (
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command, Interrupt, StateSnapshot, StreamMode
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, NotFoundError

from modeshift.calls.remembered import check_forget, list_remembered
from modeshift.configuration.databases import open_threads
from modeshift.configuration.loading import AgentCache
from modeshift.configuration.settings import Settings, load_settings
from modeshift.configuration.workspaces import ANYBODY
from modeshift.events import RunEvent, read_events, read_messages
from modeshift.messages.repair import remove_marks
from modeshift.modes.errors import InvalidInputError, ProviderError
from modeshift.modes.plain_data import JsonObject
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import spell_thread
from modeshift.threads.checks import check_settings
from modeshift.threads.compiled import Agent
from modeshift.threads.deps import AgentDeps
from modeshift.threads.journal import Journal
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
GRAPH = "agent"
"""Its name in ``langgraph.json``."""
TIMEOUT = httpx.Timeout(connect=5, read=300, write=300, pool=5)  # the SDK's
MAX_TITLE = 80
_FIND_THREAD = "SELECT 1 FROM checkpoints WHERE thread_id = :thread LIMIT 1"
_NEWEST = (
    "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id "
    "ORDER BY max(checkpoint_id) DESC LIMIT :limit"
)


@dataclass(frozen=True)
class Run:
    """A run of a thread, which begins when its events are asked for, or its end is awaited."""

    events: Callable[[], AsyncGenerator[RunEvent]]
    """Begins the run; closing what this gives stops it."""

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        """The events. Raises ``UserError``."""
        return self.events()

    def __await__(self) -> Generator[object, None, Interrupt | None]:
        """Wait for the end; the question that waits then, if any. Raises ``UserError``."""
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
    """LangGraph's, with the thread's id; for each run, and for the graph's own methods."""
    load: Callable[[], Awaitable[Agent]]
    """Gives the agent, as the clone's files are now."""
    server: RemoteGraph | None = None
    """The server that has the thread; None for this process."""
    streams: Sequence[StreamMode] = STREAMS
    """What events are made of; ``Begun`` is of ``tasks``, for a thread of this process."""
    running: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """Runs of this process, each with its thread's id."""

    @property
    def id(self) -> str:
        """The thread's id."""
        return str(self.config["configurable"]["thread_id"])

    def say(self, text: str, **host: object) -> Run:
        """A user's message; ``host`` is the rest of the input, such as ``mode``."""
        return self.run({"messages": [{"role": "user", "content": text}], **host})

    def answer(self, question: Interrupt, decisions: Sequence[GivenDecision]) -> Run:
        """Answer this question, and no other, with a decision for each of its action requests."""
        answer = {"decisions": list(decisions), "question": question.value["question"]}
        command: Command[str] = Command(resume={question.id: answer})
        return Run(lambda: self._drive(command, question))

    def go_on(self) -> Run:
        """Go on with a turn that was cut off."""
        return self.run(None)

    def run(self, input: object) -> Run:
        """A run with whatever a graph of LangGraph takes."""
        return Run(lambda: self._drive(input))

    async def stop(self) -> None:
        """Stop what runs in the thread, as a person does; what it has begun may have an effect."""
        for task, id in self.running.items():
            if id == self.id:
                task.cancel()
        if self.server is not None:
            with self._explain():
                runs = self._client.runs
                for run in await runs.list(self.id):
                    if run["status"] in ("pending", "running"):
                        await runs.cancel(self.id, run["run_id"], wait=True)

    async def set(self, **settings: object) -> None:
        """Set ``mode``, ``limit`` or ``approvals``, from the next step on, whoever takes it.

        Or ``forget`` what is ``remembered``, by ids or ``all``.
        """
        if self.server is not None:
            await self._create()
            with self._explain():
                await self._client.http.patch(f"/threads/{self.id}/mode", json=settings)
            return
        agent = await self.load()
        checked = check_settings(agent.live.deps, settings)
        mailbox = Mailbox(agent.store)
        if "forget" in checked:
            known, before = await self._read_news(), await mailbox.find(self.id, "forget")
            checked["forget"] = check_forget(*known, before, checked["forget"])
        await mailbox.put(self.id, checked)

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
        """What runs unasked, as a person has said "always", from the next step on."""
        if self.server is None:
            return list_remembered(*await self._read_news())
        with self._explain():
            try:
                answer = await self._client.http.get(f"/threads/{self.id}/mode")
            except NotFoundError:
                return []
        return list(answer["remembered"])

    async def _read_news(self) -> tuple[StateValues, StateValues]:
        """The state, and what the host has set since."""
        state, store = (await self.state()).values, (await self.load()).store
        return state, await read_host_changes(store, self.id, state)

    async def state(self) -> StateSnapshot:
        """As LangGraph has it; without values where there is no such thread."""
        with self._explain():
            try:
                state = await (self.server or await self.load()).aget_state(self.config)
            except (NotFoundError, TypeError) as error:
                # RemoteGraph's, of a thread without a checkpoint; here it would be a fault.
                if self.server is None and isinstance(error, TypeError):
                    raise
                return StateSnapshot({}, (), self.config, None, None, None, (), ())
        values = dict(state.values or {})
        if "messages" in values:
            values["messages"] = read_messages(values["messages"])
        return state._replace(values=values)

    async def history(self) -> list[AnyMessage]:
        """The messages that the model has before it."""
        return list((await self.state()).values.get("messages", []))

    async def question(self) -> Interrupt | None:
        """The question that waits for a person."""
        return next(iter((await self.state()).interrupts), None)

    async def deps(self) -> AgentDeps:
        """What there is to choose from: of a server, as this clone has it."""
        return (await self.load()).live.deps

    def _explain(self) -> AbstractContextManager[None]:
        return nullcontext() if self.server is None else _explain_errors()

    @property
    def _client(self) -> LangGraphClient:
        return self.server.client  # type: ignore[union-attr,return-value]  # it is asked before

    async def _create(self, **given: Any) -> None:
        """Have the server know the thread, if it does not yet; with what the SDK takes."""
        with self._explain():
            await self._client.threads.create(thread_id=self.id, if_exists="do_nothing", **given)

    async def _drive(
        self, input: object, answered: Interrupt | None = None
    ) -> AsyncGenerator[RunEvent]:
        """The events of a run, which is a task of its own, so that it can be stopped."""
        if answered is not None:  # which LangGraph passes over in silence where it waits no more
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
                        await events.join()  # no step begins before whoever looks has looked
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
            if self.server is None:
                chunks: Any = (await self.load()).astream(
                    input, self.config, stream_mode=list(self.streams), durability="sync"
                )
            else:
                if isinstance(input, dict) and "messages" in input:
                    title = input["messages"][0]["content"].split("\n")[0][:MAX_TITLE]
                    await self._create(metadata={"title": title})  # as the page does
                chunks = self.server.astream(
                    input, self.config, stream_mode=list(self.streams), on_disconnect="cancel"
                )
            async with aclosing(chunks):
                async for kind, part, *_ in chunks:
                    for event in read_events(kind, part):
                        yield event


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turns a server's errors into those that a person can mend."""
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


def _describe(title: object, changed: str | None, mode: object, *, waits: bool) -> str:
    when = datetime.fromisoformat(changed).astimezone() if changed else None
    parts = [title or "(no message)", when and f"{when:%d %b %H:%M}", mode]
    return " · ".join([*(str(part) for part in parts if part), *["waits for you"] * waits])


@dataclass(frozen=True)
class Agents:
    """The agent of the clone in its threads; ``open_agent`` makes one."""

    cache: AgentCache
    database: Database | None = None
    """What has the threads, of this process."""
    server: RemoteGraph | None = None
    _running: dict[asyncio.Task[None], str] = field(default_factory=dict, init=False)

    def thread(self, id: str | None = None, *, user: str | None = None) -> Thread:
        """The thread, a new one without an ``id``; ``user`` is whose folder a new one is in.

        Raises ``InvalidInputError`` for an id that is no UUID.
        """
        id = spell_thread(id) if id else str(uuid4())
        settings, store = self.cache.settings, self.cache.store
        user = user or next(iter(settings.tokens.values()), ANYBODY)

        async def load() -> Agent:
            enters = self.server is None
            return (await self.cache.of_thread(id, user, store, enters=enters)).agent

        config = RunnableConfig(configurable={"thread_id": id})
        return Thread(config, load, self.server, running=self._running)

    async def find_thread(self, id: str | None) -> Thread:
        """The thread, which must be there; ``last`` is the newest, None a new one.

        Raises ``InvalidInputError``.
        """
        if id == "last":
            if not (newest := await self.list_threads(1)):
                raise InvalidInputError("there is no thread yet; leave THREAD out for a new one")
            id = next(iter(newest))
        thread = self.thread(id)
        if id is None or (await thread.state()).values:
            return thread
        if self.server is None or not await self._adopt(thread):
            raise InvalidInputError(
                f"there is no thread {thread.id!r}; leave THREAD out for a new one"
            )
        return thread

    async def _adopt(self, thread: Thread) -> bool:
        """Have the server know a thread that a process of this clone began without it."""
        database = self.cache.settings.open_database()
        try:
            if not await database.list_columns("checkpoints"):
                return False
            if not await database.execute(_FIND_THREAD, thread=thread.id):
                return False
        finally:
            await database.close()
        await thread._create()
        return bool((await thread.state()).values)

    async def list_threads(self, limit: int = 20) -> dict[str, str]:
        """The threads that were changed last, by id, as a person knows them.

        That is title, time, mode, and whether one waits for an answer. Raises ``UserError``.
        """
        if self.server is None:
            rows = await self.database.execute(_NEWEST, limit=limit) if self.database else []
            states = {id: await self.thread(id).state() for (id,) in rows}
            return {
                id: _describe(
                    find_title(state.values), state.created_at, state.values.get("mode"),
                    waits=bool(state.interrupts),
                )
                for id, state in states.items()
            }  # fmt: skip
        client: LangGraphClient = self.server.client  # type: ignore[assignment]  # there is one
        with _explain_errors():
            threads = await client.threads.search(
                limit=limit, sort_by="updated_at", sort_order="desc",
                select=["thread_id", "metadata", "status", "updated_at"],
                extract={"mode": "values.mode"},
            )  # fmt: skip
        return {
            each["thread_id"]: _describe(
                (each["metadata"] or {}).get("title"), str(each["updated_at"]),
                (each.get("extracted") or {}).get("mode"), waits=each["status"] == "interrupted",
            )
            for each in threads
        }  # fmt: skip


@asynccontextmanager
async def open_agent(
    settings: Settings | None = None, *, address: str | None = None, file: Path | None = None
) -> AsyncIterator[Agents]:
    """The agent with the ``settings``, the clone's ``.env`` unless given.

    At ``address`` on a server, which the first of its tokens opens; else in this process, with the
    threads that a server of the clone has, too, unless they are in another SQLite ``file``. Raises
    ``UserError``.
    """
    if settings is None:
        settings = await asyncio.to_thread(load_settings)
    if address is not None:
        token = next(iter(settings.tokens), None)
        headers = {"Authorization": f"Bearer {token}"} if token else None
        # The SDK's own sends LangSmith's key, and asks a server that is gone for eight seconds.
        http = httpx.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT)
        async with LangGraphClient(http) as client:
            yield Agents(AgentCache(settings), server=RemoteGraph(GRAPH, client=client))
        return
    file = file or settings.checkpoints
    async with open_threads(settings, file) as (database, saver, store):
        yield Agents(AgentCache(settings, saver, store, Journal(database, file)), database)
