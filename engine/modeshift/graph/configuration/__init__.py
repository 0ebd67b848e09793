"""The user's and the project's files, and the agent that is built from them.

Guarantees that a file of a workspace counts only once a person has trusted it, and that a file
that does not load changes nothing. Imports ``graph.agent``, ``modeshift.graph.briefing``, ``modeshift.graph.deps``,
``modeshift.graph.models``, ``modeshift.graph.settings`` and ``modeshift.graph.threads``; only ``doors`` imports it.
"""

__all__ = (  # the public modules
    "cache",
    "environment",
    "loading",
    "mcp_file",
    "mcp_servers",
    "mode_files",
    "own_files",
    "prices",
    "project_files",
    "sources",
    "trust",
    "user_files",
    "whole_writes",
)
