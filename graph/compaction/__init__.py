"""When a conversation is summarized, and its summary.

Guarantees that a request fits into the model's window, or that a person is told why not. Imports
``graph.briefing``, ``graph.deps``, ``graph.messages``, ``graph.models``, ``graph.routing`` and
``graph.state``; ``graph.think`` and the wiring import it.
"""

__all__ = (  # the public modules
    "due",
    "node",
    "summary",
)
