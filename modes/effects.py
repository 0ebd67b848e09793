"""The table of effects: what a tool call does to the world, and all that follows from it.

A tool names its effect where it is declared; all other code reads columns, and never compares
effects. A new column is a question that every effect must answer.
"""

from dataclasses import dataclass
from typing import Literal

EffectName = Literal[
    "read",
    "edit",
    "command",
    "network",
    "mcp",
    "agent",
    "note",
    "question",
    "switch",
    "subtask",
    "complete",
]

ToolKind = Literal["read", "edit", "search", "execute", "fetch", "think", "switch_mode", "other"]
"""A tool kind of the Agent Client Protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One row of the table; the fields are its columns."""

    name: str
    does: str
    """What a call does, in words: the reason why a person is asked, or need not be."""
    asks: Literal["never", "under manual", "always"]
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
    """Whether that mode is for a conversation of its own, at whose end the mode is as before."""
    ends_turn: bool = False
    """Whether nothing may follow the call in a turn."""
    shown_as: ToolKind = "other"
    """How an editor shows it."""
    title: str = ""
    """What an editor calls it; empty for the tool's name and arguments."""


EFFECTS: dict[str, Effect] = {
    row.name: row
    for row in (
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
            reaches_network=True,
            shown_as="fetch",
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
            shown_as="think",
            title="Update the todo list",
        ),
        Effect(
            name="question",
            does="a person answers it",
            asks="always",
            can_be_allowed=False,
            takes_answer=True,
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
            shown_as="other",
        ),
        Effect(
            name="complete",
            does="ends the turn",
            asks="never",
            ends_turn=True,
            title="Done",
        ),
    )
}

NO_EFFECT = Effect(name="nothing", does="calls no tool", asks="always", can_be_allowed=False)
"""Of a call that names no tool, or whose arguments do not fit it; it is always denied."""
