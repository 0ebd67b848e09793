"""MCP servers: starting them, listing their tools, calling those.

Guarantees that a server gets nothing of the agent's environment, that it ends with the agent, that
what it returns is bounded, and that a server that fails costs its own tools and nothing else.
Imports ``modes``, ``modeshift.tools.processes`` and what is beside it; ``graph`` and ``modeshift.commands``
import it.
"""

__all__ = (  # the public modules
    "binding",
    "described",
    "managed",
    "pool",
    "server",
)
