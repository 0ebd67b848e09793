"""``SessionUsage``: how full the model's window is, and what the session has cost so far."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from acp.schema import Cost, UsageUpdate

from modeshift.editor.display.updates import SessionUpdates
from modeshift.graph.configuration.prices import CURRENCY, load_prices
from modeshift.graph.models.usage import Tokens, Usage, add_usage
from modeshift.graph.settings import Settings
from modeshift.modes.errors import UserError


class SessionUsage:
    """What the thread has taken, and what of it the editor was sent."""

    def __init__(self, settings: Settings, updates: SessionUpdates) -> None:
        self._settings = settings
        self._updates = updates
        self._usage = Usage()
        self._shown: dict[str, Tokens] | None = None

    def read(self, values: Mapping[str, Any]) -> None:
        """Take it from the thread's state."""
        self._usage = values.get("usage", Usage())

    def add(self, update: Mapping[str, Any]) -> None:
        """Take in what a node has written into the thread."""
        if isinstance(more := update.get("usage"), dict):
            self._usage = add_usage(self._usage, cast("Usage", more))

    def forget_shown(self) -> None:
        """Send it again the next time: the editor knows of nothing."""
        self._shown = None

    async def show(self) -> None:
        """Send it if it has changed; nothing, where a number is missing that the protocol wants."""
        taken, last = self._usage.get("thread", {}), self._usage.get("last")
        if taken == self._shown or last is None or last["used"] is None or last["window"] is None:
            return
        self._shown = taken
        update = UsageUpdate(session_update="usage_update", used=last["used"], size=last["window"])
        try:
            cost = await asyncio.to_thread(self._find_cost, taken)
        except UserError as error:
            await self._updates.show_notice(str(error))
        else:
            if cost is not None:
                update.cost = Cost(amount=float(cost), currency=CURRENCY)
        await self._updates.send(update)

    def _find_cost(self, taken: Mapping[str, Tokens]) -> Decimal | None:
        return load_prices(self._settings).find_cost(taken)
