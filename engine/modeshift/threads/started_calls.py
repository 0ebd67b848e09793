"""``StartedCalls``: what the agents of a process share."""

from modeshift.threads.journal import Journal
from modeshift.tools.processes.background import BackgroundCommands


class StartedCalls:
    """What all agents of a process share: who has begun what."""

    def __init__(self, journal: Journal | None = None) -> None:
        """Without a ``journal`` one in memory."""
        self.journal = journal or Journal()
        self.background = BackgroundCommands()
        """Of the commands that have begun, those that may still run."""
