"""``AgentDeps``: what the nodes share, built once for the modes' files as they are."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from modeshift.models.ceiling import Ceilings
from modeshift.modes.approval_words import ApprovalWords, word_approvals
from modeshift.modes.effects import Risk
from modeshift.modes.facts import ProjectTests
from modeshift.modes.mode import Mode
from modeshift.modes.policy import Approvals, find_risk
from modeshift.threads.journal import Journal
from modeshift.threads.notifier import Notifier
from modeshift.threads.seats import BoundModes
from modeshift.tools.processes.background import BackgroundCommands
from modeshift.tools.workspace.undo_log import UndoLog


async def no_environment() -> str:
    """The environment, where the model is to know nothing of it."""
    return ""


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


@dataclass(frozen=True)
class AgentDeps(BoundModes):
    """The modes, their tools and models, and all else that a thread needs beside its state."""

    approvals: Approvals = Approvals.MANUAL
    """The policy that a new thread starts with."""
    rules_at: Mapping[str, str] = field(default_factory=dict)
    """Rules by the path, or the folder with its slash, of which a call must name something."""
    describe_environment: Callable[[], Awaitable[str]] = no_environment
    """Where the agent works, as the model is told at a turn's start if it has changed."""
    notices: tuple[str, ...] = ()
    """What a person should know about the modes' files."""
    workspace: str = ""
    """The name of the thread's workspace below ``WORKSPACES``; empty where there is one for all."""
    bound_answers: bool = False
    """Whether a decision must name the question it answers."""
    max_switches: int = 10
    """How often the mode is switched in a turn, where the model asks."""
    ceilings: Ceilings | None = None
    """How much may be used before a person is asked; None for any amount."""
    notifier: Notifier | None = None
    started_calls: StartedCalls = field(default_factory=StartedCalls)
    tests: ProjectTests | None = None
    """The owner's test command, and the files that it depends on."""
    _risks: dict[str, tuple[Risk, str]] = field(default_factory=dict, init=False, compare=False)

    def find_risk(self, mode: Mode) -> tuple[Risk, str]:
        """What the mode can do at most; found once, as its tools stay what they are."""
        if mode.slug not in self._risks:
            self._risks[mode.slug] = find_risk(mode, self.toolbox.specs)
        return self._risks[mode.slug]

    @cached_property
    def undo_log(self) -> UndoLog | None:
        """The log; None where undo is off, or the log would be in the workspace."""
        log = self.started_calls.undo
        return log if log and not log.folder.is_relative_to(self.toolbox.workspace.root) else None

    @cached_property
    def approval_words(self) -> Mapping[str, ApprovalWords]:
        """What people read of each value of approvals."""
        return word_approvals(self.toolbox.specs)
