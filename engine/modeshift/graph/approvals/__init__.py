"""Whether a call may run, what a person is asked, and what their decision applies to.

Guarantees that a decision answers one question, and that an approval runs these arguments in this
thread, mode and workspace once. Imports ``modeshift.graph.deps``, ``modeshift.graph.messages``, ``modeshift.graph.records`` and
``modeshift.graph.state``; the nodes and the doors import it.
"""

__all__ = (  # the public modules
    "always_allow",
    "contents",
    "decisions",
    "judged",
    "judging",
    "outcome",
    "previews",
    "requests",
    "suggestions",
)
