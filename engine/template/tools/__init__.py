"""What the agent can do: the list of its tools, by the tool group that a mode needs.

To add tools, write a module like ``read.py`` with a function from ``ToolDeps`` to a list of
``Tool``, and name it below; a group that is new needs no more than that. Imports
``modeshift.tools``, and nothing else of ours.
"""

IN_EVERY_MODE = None

TOOLS = (
    ("read", "tools.read:read_tools"),
    ("edit", "tools.edit:edit_tools"),
    ("command", "tools.command:command_tools"),
    (IN_EVERY_MODE, "tools.conversation:conversation_tools"),
)
"""Tool groups, and the functions that make their tools; imported when an agent is built."""

GROUPS = tuple(dict.fromkeys([*(group for group, _ in TOOLS if group is not None), "mcp"]))
"""The groups that a mode can name; in ``mcp`` are the tools of MCP servers."""
