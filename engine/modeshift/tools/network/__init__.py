"""Fetching from the network for tools that the clone's owner writes.

Guarantees that a request goes to an address that was checked and is public, unless the owner has
allowed the host by name, and that what comes back is text of bounded size in bounded time. Imports
``modes``; tools of the owner's import it.
"""

__all__ = (  # the public modules
    "client",
)
