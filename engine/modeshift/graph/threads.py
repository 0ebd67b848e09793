"""``StartedCalls``: what the agents of a process share."""

from modeshift.graph.journal import Journal
from modeshift.tools.processes.background import BackgroundCommands


class StartedCalls:
    """What all agents of a process share: who has begun what."""

    def __init__(self, journal: Journal | None = None) -> None:
        """Without a ``journal`` one in memory."""
        self.journal = journal or Journal()
        self.going = dict[tuple[str, str], str]()
        """By thread and call, the tools of the calls that go on in this process."""
        self.background = BackgroundCommands()
        """Of the commands that have begun, those that may still run."""

    def list_going(self, thread: str) -> list[str]:
        """The tools of the thread's calls that go on."""
        return [tool for (other, _), tool in [*self.going.items()] if other == thread]
