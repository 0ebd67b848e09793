"""What the history may hold, whoever wrote it: models, clients, tools.

Guarantees that a provider takes every history that is sent: each call has one answer in its place,
ids are unique, text is whole. Imports nothing else of ``graph``; everything else may import it.
"""

__all__ = (  # modules; what is not here is the package's own
    "channels",
    "from_client",
    "from_model",
    "normal_form",
    "origin",
    "repair",
    "streamed_calls",
    "untrusted",
)
