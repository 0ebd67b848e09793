"""What the model is told before it is asked: its mode, where it works, what is left to do.

Guarantees that each thing is told once, behind all that was said before, and again only when it
has changed: a request begins with the one before. Imports ``graph.deps``, ``graph.messages``,
``graph.records``, ``graph.state`` and the tools; the nodes, ``graph.compaction`` and
``graph.configuration`` import it.
"""

__all__ = (  # the public modules
    "handover",
    "news",
    "surroundings",
)
