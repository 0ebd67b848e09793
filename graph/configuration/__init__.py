"""Where modes, rules, trust and settings' files come from, and the agent that is made of them.

Guarantees that a file of a workspace counts only once a person has trusted it, and that a file that
does not load changes nothing. Imports the rest of ``graph``; only ``doors`` imports it.
"""

__all__ = (  # modules; what is not here is the package's own
    "cache",
    "loading",
    "private",
    "project_files",
    "sources",
    "trust",
)
