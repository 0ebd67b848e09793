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
    "Replacement": "tools.workspace.text",
    **dict.fromkeys(("Tool", "ToolDeps"), "tools.tool"),
    **dict.fromkeys(("ToolFailedError", "UnknownModeError"), "modes.errors"),
    **dict.fromkeys(("fetch", "get_idempotency_key"), "tools.network"),
    **dict.fromkeys(
        ("describe_sandbox", "read_command", "run_command"), "tools.processes.sandboxes"
    ),
    **dict.fromkeys(
        ("Edited", "list_folder", "read_lines", "replace_text", "search", "write_text"),
        "tools.workspace.reading",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'modeshift.tools' has no attribute {name!r}")
    return getattr(import_module(f"modeshift.{_MODULES[name]}"), name)
