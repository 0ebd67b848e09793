"""What tools are made of: how one is declared, files, processes, the network.

The tools themselves are the clone's, which imports the names below from here; ``README.md`` of the
engine lists them. As in ``modeshift`` each is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modeshift.modes.errors import ToolFailedError as ToolFailedError
    from modeshift.modes.errors import UnknownModeError as UnknownModeError
    from modeshift.tools.network import fetch as fetch
    from modeshift.tools.network import get_idempotency_key as get_idempotency_key
    from modeshift.tools.processes.process import MAX_SECONDS as MAX_SECONDS
    from modeshift.tools.processes.sandboxes import describe_sandbox as describe_sandbox
    from modeshift.tools.processes.sandboxes import read_command as read_command
    from modeshift.tools.processes.sandboxes import run_command as run_command
    from modeshift.tools.tool import Tool as Tool
    from modeshift.tools.tool import ToolDeps as ToolDeps
    from modeshift.tools.workspace.reading import Edited as Edited
    from modeshift.tools.workspace.reading import list_folder as list_folder
    from modeshift.tools.workspace.reading import read_lines as read_lines
    from modeshift.tools.workspace.reading import replace_text as replace_text
    from modeshift.tools.workspace.reading import search as search
    from modeshift.tools.workspace.reading import write_text as write_text
    from modeshift.tools.workspace.text import Replacement as Replacement

_MODULES = {
    **dict.fromkeys(("ToolFailedError", "UnknownModeError"), "modes.errors"),
    **dict.fromkeys(("fetch", "get_idempotency_key"), "tools.network"),
    "MAX_SECONDS": "tools.processes.process",
    **dict.fromkeys(
        ("describe_sandbox", "read_command", "run_command"), "tools.processes.sandboxes"
    ),
    **dict.fromkeys(("Tool", "ToolDeps"), "tools.tool"),
    **dict.fromkeys(
        ("Edited", "list_folder", "read_lines", "replace_text", "search", "write_text"),
        "tools.workspace.reading",
    ),
    "Replacement": "tools.workspace.text",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'modeshift.tools' has no attribute {name!r}")
    return getattr(import_module(f"modeshift.{_MODULES[name]}"), name)
