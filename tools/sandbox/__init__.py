"""Running a command so that it sees the machine and changes nothing but the workspace.

Guarantees, by the kernel, what docs/safety.md says of commands; without bubblewrap there
is no sandbox, and every command asks. Imports ``tools.workspace`` and ``modes``; ``tools``,
``graph.configuration`` and ``doors`` import it.
"""

__all__ = (  # modules; what is not here is the package's own
    "bubblewrap",
    "closed_folders",
    "git",
    "hard_links",
    "limits",
    "process",
    "scan",
    "seccomp",
    "start",
    "workspace_lock",
)
