"""Sub-tasks: a mode for a conversation of its own, and back.

The state's keys hold the conversation that goes on. That which began it is put aside in
``parents``, with its mode, approvals and all that was remembered, and comes back as it was with
one result more. So everything else, questions and crashes among it, is as in any conversation.
Imports ``modeshift.graph.deps``, ``modeshift.graph.messages``, ``modeshift.graph.models``, ``modeshift.graph.records``, ``modeshift.graph.routing``
and ``modeshift.graph.state``; the nodes and the wiring import it.
"""

__all__ = (  # the public modules
    "begin",
    "end",
)
