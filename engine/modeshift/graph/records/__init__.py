"""What the keys of a thread's state hold: plain data, as a checkpoint keeps it.

Guarantees nothing by itself: what comes from outside is checked in ``modeshift.graph.entry``. Imports
``modeshift.graph.messages`` and ``modeshift.graph.models``; ``modeshift.graph.state`` imports it, and who reads a record.
"""

__all__ = (  # the public modules
    "approvals",
    "subtasks",
    "switches",
)
