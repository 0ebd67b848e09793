"""What a server may send at most, and ``Failure``: why its connection can no longer be used."""

import asyncio

MAX_BYTES = 16_000_000
"""Of one answer, as it is sent."""
MAX_UNASKED = 10_000
"""Messages that answer nothing, and lines that are no message, between two requests of ours."""
MAX_TOOLS = 500
"""Of one server."""


class Failure:
    """Set once, by the transport that notices."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.reason = ""

    def report(self, reason: str) -> None:
        """The first reason counts."""
        self.reason = self.reason or reason
        self.happened.set()
