"""What is kept of threads beside their checkpoints.

Guarantees that a call that changes the world runs once, and that what the host sets is neither
lost nor taken twice. Imports no other part of ``graph``; ``modeshift.graph.deps``, ``modeshift.graph.entry``,
``modeshift.graph.routing``, ``modeshift.graph.configuration`` and the doors import it.
"""

__all__ = (  # the public modules
    "mailbox",
    "started_calls",
)
