"""``start_quickly`` and ``collect_rarely``: what a process does before its imports, and after."""

import gc
import sys
from typing import Any

from modeshift.workarounds.langsmith import load_types_later


def start_quickly() -> None:
    """Collect no garbage until ``collect_rarely``; leave out modules that are imported in vain."""
    gc.disable()
    modules: dict[str, Any] = sys.modules
    modules.setdefault("httpx._main", None)  # its command line; where rich is missing, so is it
    load_types_later()


def collect_rarely() -> None:
    """Have Python collect garbage less often: it took an eighth of a run.

    What is loaded by now is never looked at; 50,000 new objects begin a collection.
    """
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
