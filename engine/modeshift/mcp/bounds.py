"""What a server may send at most, what of it is no text, and ``Failure``: why it is lost."""

import asyncio
import re

MAX_BYTES = 16_000_000
"""Of one answer, as it is sent."""
MAX_UNASKED = 10_000
"""Messages that answer nothing, and lines that are no message, between two requests of ours."""
MAX_TOOLS = 500
"""Of one server."""

_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.")
"""In JSON: a character in two halves, a half, any other."""


def mend_text(line: bytes) -> bytes:
    """JSON in which what is no character has become U+FFFD: bytes, and halves of a character."""
    text = line.decode("utf-8", "replace")
    return _ESCAPES.sub(lambda found: "\ufffd" if len(found[0]) == 6 else found[0], text).encode()


class Failure:
    """Set once, by the transport that notices."""

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.reason = ""

    def report(self, reason: str) -> None:
        """The first reason counts."""
        self.reason = self.reason or reason
        self.happened.set()
