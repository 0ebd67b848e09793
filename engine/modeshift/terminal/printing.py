"""``Printer``: prints lines above the panel, in bursts, so that keys are read in between."""

import asyncio

from prompt_toolkit.application import Application

BURST = 0.05
"""Seconds between two writes: what comes in meanwhile is written at once."""
MAX_BURST = 65_536


class Printer:
    """Prints above an application that is drawn on the last lines of the terminal."""

    def __init__(self, app: Application[None]) -> None:
        self._app = app
        self._printed, self._wrote = list[str](), 0.0

    def print(self, text: str) -> None:
        """Print lines, soon."""
        if not self._printed:
            loop = asyncio.get_running_loop()
            loop.call_at(max(self._wrote + BURST, loop.time()), self._write)
        self._printed.append(text)

    def _write(self) -> None:
        if not self._printed:
            return
        text = "".join(self._printed)
        end = text.find("\n", MAX_BURST) + 1 or len(text)  # keys come between
        self._app.renderer.erase(leave_alternate_screen=False)
        self._app.output.write_raw(text[:end])
        self._app.output.flush()
        self._app.invalidate()
        loop = asyncio.get_running_loop()
        self._wrote, rest = loop.time(), text[end:]
        self._printed = [rest] if rest else []
        if rest:
            loop.call_soon(self._write)

    async def drain(self) -> None:
        """Print all that is left."""
        while self._printed:
            self._write()
            await asyncio.sleep(0)
