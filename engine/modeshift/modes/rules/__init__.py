"""Permissions: which calls a pattern matches, and which paths always ask.

Guarantees that what cannot be told counts as no ``allow`` and as a possible ``deny``. Imports
``modeshift.modes.toolspec``; ``modes``, ``tools`` and ``graph`` import it.
"""

__all__ = (  # the public modules
    "file_regex",
    "globs",
    "ignore_rules",
    "matching",
    "permissions",
    "protected_paths",
    "server_tools",
    "shell_words",
    "urls",
)
