"""``start_quickly`` and ``collect_rarely``: what a process does before it imports, and after."""

import gc
import sys
from typing import Any

from modeshift.workarounds.langsmith import load_types_later


def start_quickly() -> None:
    """Look for no cycles of dead objects, as what is imported stays; import less of libraries.

    ``collect_rarely`` is due once the process has its imports.
    """
    gc.disable()
    modules: dict[str, Any] = sys.modules
    for command_line in ("httpx._main", "httpx2._main"):  # with rich; they may lack it
        modules.setdefault(command_line, None)
    load_types_later()


def collect_rarely() -> None:
    """Have Python look for cycles of dead objects less often: it took an eighth of a run.

    What is loaded by now is left out; of what is new there may be 50,000 objects first.
    """
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
