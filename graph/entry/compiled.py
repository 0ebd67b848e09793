"""``Agent``: the compiled graph, which checks what is written from outside before it is saved.

LangGraph saves first and looks afterwards whether the value fits; one that does not stays.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate
from typing_extensions import override

from graph.state import Input, State
from modes.errors import InvalidInputError
from tools.processes.background import BackgroundCommands

Updates = Sequence[Sequence[StateUpdate]]


class Agent(CompiledStateGraph[State, None, Input, State]):
    """What ``build_agent`` makes."""

    def __init__(
        self, *, check: Callable[[Any], None], background: BackgroundCommands, **parts: Any
    ) -> None:
        super().__init__(**parts)
        self.check = check
        self.background = background

    @classmethod
    def of(
        cls,
        graph: CompiledStateGraph[State, None, Input, State],
        check: Callable[[Any], None],
        background: BackgroundCommands,
    ) -> Self:
        """The graph with ``check``, made as LangGraph copies one."""
        return cls(check=check, background=background, **vars(graph))

    @override
    def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        if isinstance(input, Command):
            self.check(input)
        chunks: Any = super().astream(input, config, **options)
        return self._end_commands(chunks, config or {}, is_new=isinstance(input, dict))

    async def _end_commands(
        self, chunks: AsyncGenerator[Any], config: RunnableConfig, *, is_new: bool
    ) -> AsyncIterator[Any]:
        """Pass the chunks on, and end the turn's commands with the turn.

        A turn ends with a run: whole, failed or cancelled, but not one that waits for a person.
        """
        here = config.get("configurable", {})
        thread, goes_on = str(here.get("thread_id", "")), False
        if is_new:
            await self.background.end(thread)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
            if self.background.has(thread):
                last = {name: value for name, value in here.items() if name != "checkpoint_id"}
                goes_on = bool((await self.aget_state({"configurable": last})).next)
        finally:
            if not goes_on:
                await self.background.end(thread)

    @override
    def stream(self, input: Any, *given: Any, **options: Any) -> Iterator[Any]:
        if isinstance(input, Command):
            self.check(input)
        return super().stream(input, *given, **options)

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Updates) -> RunnableConfig:
        self._check_all(supersteps)
        with _name_missing_key():
            return super().bulk_update_state(config, supersteps)

    @override
    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Updates
    ) -> RunnableConfig:
        self._check_all(supersteps)
        with _name_missing_key():
            return await super().abulk_update_state(config, supersteps)

    def _check_all(self, supersteps: Updates) -> None:
        for update in (one for step in supersteps for one in step):
            self.check(update[0])


@contextmanager
def _name_missing_key() -> Iterator[None]:
    """The edge behind a node reads keys that a new thread does not have yet."""
    try:
        yield
    except LookupError as error:
        raise InvalidInputError(
            f"the thread has no {error} yet, so `as_node` cannot be used; "
            "leave it out, or send a message first"
        ) from error
