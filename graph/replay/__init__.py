"""Cassettes: recorded traffic of the providers' clients, and its replay.

Guarantees that a replay sends nothing over the network, and that no secret is written. Imports
nothing else of ``graph``; ``graph.models``, the recorder in ``tests`` and ``doors`` import it.
"""

__all__ = (  # modules; what is not here is the package's own
    "cassette",
    "dialogue",
    "player",
    "scrubbing",
    "secrets",
)
