"""``ShownOptions``: sends an editor the options and what a session has used, when they change."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal

from acp.helpers import update_available_commands, update_current_mode
from acp.schema import ConfigOptionUpdate, Cost, UsageUpdate

from modeshift.configuration.prices import CURRENCY, load_prices
from modeshift.configuration.settings import Settings
from modeshift.editor.display.updates import SessionUpdates
from modeshift.editor.options import Options
from modeshift.models.usage import Tokens, Usage
from modeshift.modes.errors import UserError


class ShownOptions:
    """What the editor was last sent of a session; mutable."""

    def __init__(self, updates: SessionUpdates, settings: Settings) -> None:
        self._updates = updates
        self._settings = settings
        self._shown: dict[str, object] = {}
        self.usage = Usage()
        """What the thread has taken by now."""

    def describe(self, now: Options) -> dict[str, object]:
        """The options as the response to new, load and resume carries them."""
        self._shown = {"mode": now.mode, "options": now}
        return {"modes": now.mode_state(), "config_options": now.config_options()}

    async def show(self, now: Options) -> None:
        """Send the editor what has changed, whoever changed it."""
        options = ConfigOptionUpdate(
            session_update="config_option_update", config_options=now.config_options()
        )
        for name, value, update in (
            ("mode", now.mode, update_current_mode(now.mode)),
            ("options", now, options),
            ("commands", now.modes, update_available_commands(now.commands())),
        ):
            if self._shown.get(name) != value:
                self._shown[name] = value
                await self._updates.send(update)
        await self._show_usage()

    async def _show_usage(self) -> None:
        """Send how full the window is, unless a number is missing that the protocol wants."""
        taken, last = self.usage.get("thread", {}), self.usage.get("last")
        if last is None or last["used"] is None or last["window"] is None:
            return
        if self._shown.get("usage") == taken:
            return
        self._shown["usage"] = taken
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
