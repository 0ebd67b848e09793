"""Recorded provider traffic (cassettes), and ``MODEL=replay:...``, which plays it.

Guarantees that a replay sends nothing over the network. Imports ``graph.messages``;
``graph.models``, ``doors.commands`` and the recorder in ``tests`` import it.
"""

__all__ = (  # the public modules
    "cassette",
    "dialogue",
    "player",
)
