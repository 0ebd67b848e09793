"""When a conversation is summarized, and its summary.

Guarantees that a request fits into the model's window, or that a person is told why not. Imports
``modeshift.graph.briefing``, ``modeshift.graph.deps``, ``modeshift.graph.messages``, ``modeshift.graph.models``, ``modeshift.graph.routing`` and
``modeshift.graph.state``; ``modeshift.graph.think`` and the wiring import it.
"""

__all__ = (  # the public modules
    "due",
    "node",
    "summary",
)
