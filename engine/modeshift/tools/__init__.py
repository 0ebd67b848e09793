"""What tools are made of: how one is declared, files, processes, the network.

The tools themselves are the clone's, which imports the names below from here; ``README.md`` of the
engine lists them. As in ``modeshift`` each is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modeshift.modes.errors import ToolFailedError, UnknownModeError
    from modeshift.tools.network import fetch, get_idempotency_key
    from modeshift.tools.processes.process import MAX_SECONDS
    from modeshift.tools.processes.sandboxes import describe_sandbox, read_command, run_command
    from modeshift.tools.tool import Tool, ToolDeps
    from modeshift.tools.workspace.reading import (
        Edited,
        list_folder,
        read_lines,
        replace_text,
        search,
        write_text,
    )
    from modeshift.tools.workspace.text import Replacement

__all__ = [
    "MAX_SECONDS",
    "Edited",
    "Replacement",
    "Tool",
    "ToolDeps",
    "ToolFailedError",
    "UnknownModeError",
    "describe_sandbox",
    "fetch",
    "get_idempotency_key",
    "list_folder",
    "read_command",
    "read_lines",
    "replace_text",
    "run_command",
    "search",
    "write_text",
]
_MODULES = {
    "MAX_SECONDS": "tools.processes.process",
    "Edited": "tools.workspace.reading",
    "Replacement": "tools.workspace.text",
    "Tool": "tools.tool",
    "ToolDeps": "tools.tool",
    "ToolFailedError": "modes.errors",
    "UnknownModeError": "modes.errors",
    "describe_sandbox": "tools.processes.sandboxes",
    "fetch": "tools.network",
    "get_idempotency_key": "tools.network",
    "list_folder": "tools.workspace.reading",
    "read_command": "tools.processes.sandboxes",
    "read_lines": "tools.workspace.reading",
    "replace_text": "tools.workspace.reading",
    "run_command": "tools.processes.sandboxes",
    "search": "tools.workspace.reading",
    "write_text": "tools.workspace.reading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'modeshift.tools' has no attribute {name!r}")
    return getattr(import_module(f"modeshift.{_MODULES[name]}"), name)
