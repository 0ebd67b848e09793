"""Calls of tools: all tools by name, and the check of a call against its tool.

Guarantees that no call reaches a verdict, or a tool, whose arguments do not fit the tool, could not
be stored, or name a path that leads out of the workspace; and that the list of tools holds, or
nothing starts. Imports ``modes`` and all of ``tools`` but the sandbox; ``graph`` and ``doors``
import it.
"""

__all__ = (  # the public modules
    "arguments",
    "toolbox",
)
