"""``LoopThread``: an event loop of its own, for connections that outlive the caller's.

A session belongs to the event loop that began it. The agent runs in several (the dev server has
more than one, each test its own), so no one of theirs would do.
"""

import asyncio
import atexit
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
SECONDS_TO_END = 5


class LoopThread:
    """Started at first use; a daemon, so that nothing in it can keep the process alive."""

    def __init__(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """``end`` runs in it when the process exits."""
        self._end = end
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it in the thread, and wait here; a cancellation reaches it."""
        loop = self._loop
        if loop is None:
            loop = await asyncio.to_thread(self._start)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def submit(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it run if the thread does; do not wait."""
        if self._loop is None:
            work.close()
        else:
            asyncio.run_coroutine_threadsafe(work, self._loop)

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import_module("modeshift.mcp.session")  # with the SDK, which takes a while
                loop = asyncio.new_event_loop()
                Thread(target=loop.run_forever, name="mcp", daemon=True).start()
                atexit.register(self._finish, loop)
                self._loop = loop
            return self._loop

    def _finish(self, loop: asyncio.AbstractEventLoop) -> None:
        ending = asyncio.run_coroutine_threadsafe(self._end(), loop)
        with suppress(TimeoutError):
            ending.result(SECONDS_TO_END)
