"""What stands around the nodes: what comes in from outside, and the tools of MCP servers.

Guarantees that a run's input or an update that does not fit is refused before any of it is saved,
that a thread which has such a value all the same can be read and continued, and that each node
knows the tools that are there by now. Imports ``modeshift.graph.deps``, ``modeshift.graph.messages``,
``modeshift.graph.models``, ``modeshift.graph.records``, ``modeshift.graph.routing``, ``modeshift.graph.state`` and ``modeshift.graph.threads``; the
wiring, ``modeshift.graph.intake`` and ``modeshift.server`` import it.
"""

__all__ = (  # the public modules
    "checks",
    "compiled",
    "live_deps",
)
