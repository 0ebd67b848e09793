"""The state of a thread: the engine's keys, and your own."""

import modeshift


class State(modeshift.State, total=False):
    """A key of your own is a line here: ``ticket: str``."""
