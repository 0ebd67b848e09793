"""``stopping_well``: lets steps end when a signal stops the server."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from modeshift.configuration.settings import Settings
from modeshift.threads.stopping import stop
from modeshift.tools.processes.background import end_every_command

log = logging.getLogger("modeshift")


@asynccontextmanager
async def stopping_well(settings: Settings) -> AsyncIterator[None]:
    """After SIGTERM or Ctrl-C the steps that run may end, within ``STOP_SECONDS``."""
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def begin(number: int, frame: FrameType | None) -> None:
        log.warning("the server stops; a step may take %d s more", settings.stop_seconds)
        loop.call_soon_threadsafe(stop.begin, settings.stop_seconds)
        if callable(before[number]):
            before[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, begin)
    try:
        yield
    finally:
        stop.begin(settings.stop_seconds)
        await stop.wait()
        await end_every_command()
