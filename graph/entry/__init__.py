"""What may get into a thread from outside: a run's input, an update, an older checkpoint.

Guarantees that what does not fit is refused before any of it is saved, and that a thread which
has such a value all the same can be read and continued. Imports ``graph.state`` and
``graph.messages``; the nodes and the wiring import it.
"""

__all__ = (  # the public modules
    "checks",
    "compiled",
)
