"""``Effect``: what a tool does to the world; ``ToolSpec``: what the rules know of a tool."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

EffectName = Literal[
    "read",
    "edit",
    "command",
    "network",
    "outside-read",
    "outside",
    "mcp",
    "agent",
    "note",
    "question",
    "switch",
    "subtask",
    "complete",
]

Asks = Literal["never", "under manual", "always"]

ToolKind = Literal["read", "edit", "search", "execute", "fetch", "think", "switch_mode", "other"]
"""A tool kind of the Agent Client Protocol."""

Risk = Literal["low", "middle", "high"]
"""What a call may do: nothing that lasts; an edit, or what its server calls harmless; more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One row of the table; the fields are its columns."""

    name: str
    does: str
    """What a call does, in words: the reason why a person is asked, or need not be."""
    asks: Asks
    """Under which approval policy a person is asked, where no rule or memory decides."""
    can_be_allowed: bool = True
    """Whether a rule may say ``allow``; False where it is a person who decides or answers."""
    can_be_remembered: bool = False
    """Whether a person may choose "always allow" for such calls."""
    runs_programs: bool = False
    """Whether the call starts programs: without a sandbox each asks, whatever is allowed."""
    runs_beside_others: bool = False
    """Whether such calls of one message may run at the same time."""
    changes_the_world: bool = False
    """Whether running a call twice differs from running it once: after a crash it is not redone."""
    result_is_data: bool = False
    """Whether the result is somebody else's text, and marked as such for the model."""
    reads_files: bool = False
    """Whether the arguments in ``ToolSpec.paths`` name files that the call shows."""
    changes_files: bool = False
    """Whether the arguments in ``ToolSpec.paths`` name files that the call writes."""
    stays_outside: bool = False
    """Whether the call has nothing to do with files: none is judged."""
    reaches_network: bool = False
    """Whether the tool may name a ``ToolSpec.url``, which the call fetches."""
    owns_tools: bool = False
    """Whether the call has tools of its own, which are not judged: no limit can hold it."""
    updates_state: bool = False
    """Whether the tool returns updates of the thread's state beside its text."""
    takes_answer: bool = False
    """Whether a person's words are the result."""
    switches_mode: bool = False
    """Whether an approved call changes the mode to its argument ``mode_slug``."""
    starts_subtask: bool = False
    """Whether that mode is for a sub-task: a conversation at whose end the mode is as before."""
    part: str = ""
    """Its name in a mode's ``conversation``, which may leave it out; empty if it cannot."""
    ends_turn: bool = False
    """Whether nothing may follow the call in a turn."""
    shown_as: ToolKind = "other"
    """How an editor shows it."""
    title: str = ""
    """What an editor calls it; empty for the tool's name and arguments."""

    def voids(self, behind: "Effect") -> bool:
        """Whether rejecting such a call voids one behind it: one that changes something.

        Behind a switch every call, as it was written for another mode; an answer is never lost.
        """
        if behind.takes_answer:
            return False
        return self.switches_mode or behind.changes_the_world or behind.switches_mode


_ROWS = (
    Effect(
        name="read",
        does="reads only",
        asks="never",
        can_be_remembered=True,
        runs_beside_others=True,
        result_is_data=True,
        reads_files=True,
        shown_as="read",
    ),
    Effect(
        name="edit",
        does="changes a file",
        asks="under manual",
        can_be_remembered=True,
        changes_the_world=True,
        changes_files=True,
        shown_as="edit",
    ),
    Effect(
        name="command",
        does="runs a command in the sandbox",
        asks="under manual",
        can_be_remembered=True,
        runs_programs=True,
        changes_the_world=True,
        result_is_data=True,
        shown_as="execute",
    ),
    Effect(
        name="network",
        does="reaches the network",
        asks="always",
        can_be_remembered=True,
        changes_the_world=True,
        result_is_data=True,
        stays_outside=True,
        reaches_network=True,
        shown_as="fetch",
    ),
    Effect(
        name="outside-read",
        does="reads something outside",
        asks="never",
        can_be_remembered=True,
        runs_beside_others=True,
        result_is_data=True,
        stays_outside=True,
        shown_as="fetch",
    ),
    Effect(
        name="outside",
        does="changes something outside",
        asks="always",
        changes_the_world=True,
        result_is_data=True,
        stays_outside=True,
    ),
    Effect(
        name="mcp",
        does="calls an MCP server",
        asks="always",
        can_be_remembered=True,
        changes_the_world=True,
        result_is_data=True,
    ),
    Effect(
        name="agent",
        does="runs an agent that has tools of its own",
        asks="always",
        changes_the_world=True,
        result_is_data=True,
        owns_tools=True,
    ),
    Effect(
        name="note",
        does="changes only the agent's own notes",
        asks="never",
        updates_state=True,
        part="todos",
        shown_as="think",
        title="Update the todo list",
    ),
    Effect(
        name="question",
        does="a person answers it",
        asks="always",
        can_be_allowed=False,
        takes_answer=True,
        part="questions",
    ),
    Effect(
        name="switch",
        does="changes the mode",
        asks="always",
        can_be_allowed=False,
        switches_mode=True,
        shown_as="switch_mode",
    ),
    Effect(
        name="subtask",
        does="has a sub-task done in a mode",
        asks="always",
        can_be_allowed=False,
        switches_mode=True,
        starts_subtask=True,
    ),
    Effect(
        name="complete",
        does="ends the turn",
        asks="never",
        part="completion",
        ends_turn=True,
        title="Done",
    ),
)
EFFECTS: dict[str, Effect] = {row.name: row for row in _ROWS}
NO_EFFECT = Effect(name="nothing", does="calls no tool", asks="always", can_be_allowed=False)
"""The effect of a call that names no tool, or does not fit it: such a call is always denied."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of an MCP server, in the server's own words."""

    server: str
    """The server's name in the user's configuration."""
    name: str
    is_read_only: bool = False
    """Its ``readOnlyHint``: it decides in which modes the tool is, never that a call runs."""
    host: str | None = None
    """The host at which the server is reached; None for a program."""
    digest: str = ""
    """The digest of its description, schema and hints: an approval is for these."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the verdict sees it."""

    name: str
    effect: Effect
    group: str | None = None
    """The tool group that a mode needs; None for a tool that every mode has."""
    paths: tuple[str, ...] = ()
    """The arguments that name the files which the call reads or changes, all of them."""
    reads_below: bool = False
    """Whether a path may be a folder, of which the call reads what is in it."""
    command: str | None = None
    """The argument that is the command line."""
    url: str | None = None
    """The argument that is the address which the call fetches."""
    subject: tuple[str, ...] = ()
    """The arguments that a card's title has; empty for all that are text."""
    state: tuple[str, ...] = ()
    """The arguments that are keys of the thread's state, which the model does not give."""
    may_be_remembered: bool = False
    """Whether a person may choose "always allow", although the effect does not let them."""
    sandboxed: bool = False
    """Whether the operating system keeps what it runs from doing harm."""
    way_out: str | None = None
    """For a call of git, the path in ``.git`` that leads to another repository."""
    served: ServerTool | None = None
    """For a tool of an MCP server, what the server says of it."""

    @property
    def needs_workspace(self) -> bool:
        """Whether it works on files, or runs commands."""
        effect = self.effect
        return bool(self.paths or self.command or effect.changes_files or effect.runs_programs)

    @cached_property
    def can_be_remembered(self) -> bool:
        """Whether a person may choose "always allow" for its calls."""
        return self.effect.can_be_remembered or self.may_be_remembered

    @property
    def risk(self) -> Risk:
        """What a call can do at most."""
        if not self.effect.changes_the_world:
            return "low"
        says_harmless = self.served is not None and self.served.is_read_only
        return "middle" if self.effect.changes_files or says_harmless else "high"

    @cached_property
    def resolved(self) -> tuple[str, ...]:
        """The arguments that are judged, and run, in their resolved form."""
        url = () if self.url is None else (self.url,)
        return (*self.paths, *url, *self.state)

    @property
    def is_known_by_subject(self) -> bool:
        """Whether a permission's pattern is for the arguments in ``subject``."""
        return bool(self.subject) and not (self.paths or self.command or self.url)

    @property
    def takes_patterns(self) -> bool:
        """Whether a permission can be for some calls of the tool and not for others."""
        return bool(self.paths or self.command or self.url or self.subject)
