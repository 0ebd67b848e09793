"""What the model is told before it is asked: its mode, where it works, what is left to do.

Guarantees that each thing is told once, behind all that was said before, and again only when it
has changed: a request begins with the one before. Imports ``modeshift.graph.deps``, ``modeshift.graph.messages``,
``modeshift.graph.records``, ``modeshift.graph.state`` and the tools; the nodes, ``modeshift.graph.compaction`` and
``modeshift.graph.configuration`` import it.
"""

__all__ = (  # the public modules
    "handover",
    "news",
    "surroundings",
)
