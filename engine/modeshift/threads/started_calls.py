"""``StartedCalls``: what the agents of a process share."""

from pathlib import Path

from modeshift.threads.journal import Journal
from modeshift.tools.processes.background import BackgroundCommands
from modeshift.tools.workspace.undo_log import UndoLog


class StartedCalls:
    """The journal, the undo log and the background commands of all agents of a process."""

    def __init__(self, journal: Journal | None = None, undo_days: int = 0) -> None:
        """Without a ``journal`` one in memory, and nothing is kept for undo."""
        self.journal = journal or Journal()
        beside = self.journal.beside
        folder = beside and Path(f"{beside}.undo")
        self.undo = UndoLog(folder, undo_days) if folder and undo_days else None
        """What undo needs; None where it is off."""
        self.background = BackgroundCommands()
        """The commands that may still run."""
