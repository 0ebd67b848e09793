"""MCP servers: starting them, listing their tools, calling those.

Guarantees that a server gets nothing of the agent's environment, that it ends with the agent,
that what it returns is bounded, and that a server that fails costs its own tools and nothing
else.
"""
