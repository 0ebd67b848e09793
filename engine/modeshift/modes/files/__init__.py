"""Reading modes and permissions from YAML and JSON that anybody may have written.

Guarantees bounds on size and depth, and an error that names file, mode, field and value. Imports
``modes``; ``modeshift.modes.catalog``, ``modeshift.graph.configuration`` and ``doors`` import it.
"""

__all__ = (  # the public modules
    "bounded_yaml",
    "copied_text",
    "modes_file",
)
