"""``Stop``: lets the steps of this process end, within a bound, and begins no other one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from langgraph.runtime import RunControl

SECONDS_BETWEEN = 0.05


class Stop:
    """One object for each process, in the event loop of its runs."""

    def __init__(self) -> None:
        self.is_due = False
        self._end: float | None = None
        self._runs = set[RunControl]()
        self._steps = set[asyncio.Timeout]()

    def begin(self, seconds: float) -> None:
        """Let no other step begin; one that goes on may take so many seconds."""
        if self.is_due:
            return
        self.is_due = True
        self._end = asyncio.get_running_loop().time() + seconds
        for control in self._runs:
            control.request_drain()
        for timeout in self._steps:
            timeout.reschedule(self._end)

    async def wait(self) -> None:
        """Wait until no run goes on."""
        while self._runs:  # noqa: ASYNC110  # they end in any order, and each within the bound
            await asyncio.sleep(SECONDS_BETWEEN)

    @contextmanager
    def run(self) -> Iterator[RunControl]:
        """A run goes on during the block; it ends early if the process stops."""
        control = RunControl()
        if self.is_due:
            control.request_drain()
        self._runs.add(control)
        try:
            yield control
        finally:
            self._runs.discard(control)

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """A step goes on during the block. Raises ``TimeoutError`` where it takes too long."""
        async with asyncio.timeout_at(self._end) as timeout:
            self._steps.add(timeout)
            try:
                yield
            finally:
                self._steps.discard(timeout)


stop = Stop()
