"""What the keys of a thread's state hold: plain data, as a checkpoint keeps it.

Guarantees nothing by itself: what comes from outside is checked in ``graph.entry``. Imports
``graph.messages`` and ``graph.models``; ``graph.state`` imports it, and who reads a record.
"""

__all__ = (  # the public modules
    "approvals",
    "subtasks",
    "switches",
)
