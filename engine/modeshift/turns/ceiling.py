"""``ask_to_go_on``: at a ceiling on the cost a person decides before the model is asked again."""

import asyncio

from modeshift.calls.decisions import ask_yes_or_no
from modeshift.models.usage import Usage
from modeshift.modes.errors import CeilingError
from modeshift.turns.start import Start

GO_ON = "go_on"
"""Stands where a call has its tool's name."""


async def ask_to_go_on(start: Start) -> Usage:
    """What a person has allowed, as an update; empty where no ceiling is reached.

    Interrupts the run, and does nothing before. Raises ``CeilingError`` if the person says no.
    """
    ceilings, usage = start.deps.ceilings, start.state.get("usage", Usage())
    if ceilings is None:
        return Usage()
    allowed = {**usage.get("allowed", {})}
    for scope, ceiling, spent in await asyncio.to_thread(ceilings.list_reached, usage):
        told = f"This {scope} has taken {ceiling.show(spent)}; you are asked at every {ceiling}."
        unique = (start.state["messages"][-1].id, GO_ON, scope, spent)  # as in a copy of the thread
        if not ask_yes_or_no(start.deps, GO_ON, f"{told} Go on?", {}, *unique):
            raise CeilingError(f"{told} The answer was no.")
        allowed[scope] = str(spent + ceiling.amount)  # as much again
    return Usage(allowed=allowed) if allowed != usage.get("allowed", {}) else Usage()
