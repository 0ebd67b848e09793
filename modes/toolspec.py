"""``ToolSpec``: what the rules must know about a tool, and nothing more."""

from dataclasses import dataclass
from enum import StrEnum


class ToolGroup(StrEnum):
    """The groups a mode can be granted."""

    READ = "read"
    EDIT = "edit"
    COMMAND = "command"
    MCP = "mcp"


class Effect(StrEnum):
    """What a call of the tool does to the world."""

    READ = "read"
    """Changes nothing; calls may run side by side."""
    EDIT = "edit"
    """Changes files in the workspace."""
    COMMAND = "command"
    """Runs a program, which may do anything."""
    NOTE = "note"
    """Changes only the agent's own notes, such as its todo list."""
    QUESTION = "question"
    """Puts a question to a person, whose answer is the result."""
    SWITCH = "switch"
    """Changes the mode, which a person decides under every policy."""
    COMPLETE = "complete"
    """Ends the turn."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the verdict sees it."""

    name: str
    effect: Effect
    group: ToolGroup | None = None
    """The group a mode needs; None for a tool that every mode has."""
    paths: tuple[str, ...] = ()
    """The arguments that name the files which the call reads or changes, all of them."""
    reads_below: bool = False
    """Whether a path may be a folder, of which the call reads what is in it."""
    command: str | None = None
    """The argument that is the command line."""
    sandboxed: bool = False
    """Whether the operating system keeps what it runs from doing harm."""

    @property
    def takes_patterns(self) -> bool:
        """Whether a permission can be for some calls of the tool and not for others."""
        return bool(self.paths) or self.command is not None
