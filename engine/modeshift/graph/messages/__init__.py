"""The messages of a thread's history, whoever wrote them: models, clients, tools.

Guarantees that any provider takes the history that it is sent: each call has one result in its
place, ids are unique, text is whole. Imports nothing else of ``graph``; all of it may import this.
"""

__all__ = (  # the public modules
    "channels",
    "from_client",
    "from_model",
    "instructions",
    "normal_form",
    "provider_form",
    "repair",
    "shortening",
    "thinking",
    "untrusted",
)
