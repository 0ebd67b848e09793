"""``ToolDeps``: what the tools work on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from modes.mode import Mode
from tools.processes.process import Limits
from tools.processes.sandboxes import Sandbox
from tools.workspace.workspace import Workspace


@dataclass(frozen=True)
class Commands:
    """How commands run: in a sandbox, or with the rights of whoever runs this."""

    sandbox: Sandbox | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class ToolDeps:
    """The argument of each function in the list of tools, which makes the tools from it."""

    workspace: Workspace
    modes: Mapping[str, Mode] = field(default_factory=dict)
    """The modes that can be named, by slug."""
    commands: Commands = field(default_factory=Commands)
    allowed_hosts: tuple[str, ...] = ()
    """``host`` or ``host:port``: where ``tools.network`` may go although it is not public."""
