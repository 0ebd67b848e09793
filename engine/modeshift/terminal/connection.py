"""``Connection``: the agent that a terminal talks to, on the dev server or in this process."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import httpx
from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Interrupt, StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError, NotFoundError

from modeshift.configuration.loading import AgentCache, CachedAgent
from modeshift.configuration.settings import Settings
from modeshift.configuration.user_files import open_threads
from modeshift.configuration.workspaces import ANYBODY
from modeshift.modes.errors import InvalidInputError, ProviderError
from modeshift.threads.deps import AgentDeps
from modeshift.threads.journal import Journal

STREAMS = ["messages", "updates", "custom"]
GRAPH = "agent"  # its name in langgraph.json
TIMEOUT = httpx.Timeout(connect=5, read=300, write=300, pool=5)  # the SDK's


@dataclass(frozen=True)
class Connection:
    """One agent, and one thread of it."""

    agents: AgentCache
    thread: str
    server: RemoteGraph | None = None
    """The agent of the dev server; None for one in this process."""
    where: str = "by itself, in this process"
    """In which process it runs, in words."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, thread: str, address: str | None
    ) -> AsyncIterator[Self]:
        """To the server at ``address``, or without one to an agent on the same threads."""
        if address is None:
            async with open_threads(settings, settings.checkpoints) as (database, saver, store):
                journal = Journal(database, settings.checkpoints)
                yield cls(AgentCache(settings, saver, store, journal), thread)
            return
        token = next(iter(settings.tokens), None)
        headers = {"Authorization": f"Bearer {token}"} if token else None
        # The SDK's own sends LangSmith's key, and asks a server that is gone for eight seconds.
        http = httpx.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT)
        async with LangGraphClient(http) as client:
            yield cls(
                AgentCache(settings), thread, RemoteGraph(GRAPH, client=client), f"on {address}"
            )

    async def load(self) -> AgentDeps:
        """What there is to choose from, as the files are now; raises ``UserError``."""
        return (await self._load()).deps

    async def _load(self) -> CachedAgent:
        user = next(iter(self.agents.settings.tokens.values()), ANYBODY)
        store = self.agents.store
        return await self.agents.of_thread(self.thread, user, store, enters=self.server is None)

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread}}

    async def read(self) -> StateSnapshot | None:
        """The thread's state; None if there is no such thread. Raises ``UserError``."""
        with _explain_errors():
            try:
                graph = self.server or (await self._load()).agent
                state = await graph.aget_state(self._config)
            except NotFoundError:
                return None
        return state if state.values else None

    async def stream(self, input: Any) -> AsyncIterator[tuple[str, Any]]:
        """Run, and give what ``astream`` does; closing it stops the run. Raises ``UserError``."""
        graph: Any = self.server or (await self._load()).agent
        options: Mapping[str, Any] = {"durability": "sync"}
        if self.server is not None:
            options = {"on_disconnect": "cancel"}
        chunks = graph.astream(input, self._config, stream_mode=STREAMS, **options)
        with _explain_errors():
            if self.server is not None and isinstance(input, dict) and "messages" in input:
                title = input["messages"][0]["content"].split("\n")[0][:80]  # as the page's
                await self.server.client.threads.create(  # type: ignore[union-attr]  # has one
                    thread_id=self.thread, metadata={"title": title}, if_exists="do_nothing"
                )
            async with aclosing(chunks):
                async for kind, part, *_ in chunks:
                    yield kind, part


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turns the server's errors into those that a person can mend."""
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


def read_message(value: Any) -> AnyMessage:
    """A message, as the agent gives it or as the server sends it."""
    if isinstance(value, BaseMessage):
        return value  # type: ignore[return-value]  # of the kinds that a thread holds
    if value.get("type") == "AIMessageChunk":
        return AIMessageChunk.model_validate(value)
    return convert_to_messages([value])[0]  # type: ignore[return-value]  # as above


def find_question(state: StateSnapshot | None) -> Interrupt | None:
    """The question that waits for a person."""
    return next(iter(state.interrupts), None) if state is not None else None
