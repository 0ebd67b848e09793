"""Running a program to its end, and choosing the sandbox to run it in.

Guarantees that what a program started ends with it, that its time, memory, processes and output
are bounded, and that it gets none of the agent's keys. Imports ``modes``, ``tools.calling`` and
``tools.workspace``; ``tools``, ``graph.configuration`` and ``doors.commands`` import it.
"""

__all__ = (  # the public modules
    "environment",
    "output",
    "process",
    "sandboxes",
)
