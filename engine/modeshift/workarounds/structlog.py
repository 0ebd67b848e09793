"""``LevelFirst`` for ``structlog``; seen with 25.5.0."""

import logging
from typing import Any

from structlog.stdlib import BoundLogger
from typing_extensions import override


class LevelFirst(BoundLogger):
    """Looks at the level before it hands a line to a thread and waits, as LangGraph's server does.

    A seventh of the threads' work was for lines that nobody sees. No issue asks for it yet:
    "ainfo() should return at once where the level is off".
    """

    @override
    async def adebug(self, event: str, *args: Any, **named: Any) -> None:
        if self.isEnabledFor(logging.DEBUG):
            await super().adebug(event, *args, **named)

    @override
    async def ainfo(self, event: str, *args: Any, **named: Any) -> None:
        if self.isEnabledFor(logging.INFO):
            await super().ainfo(event, *args, **named)
