"""The Agent Client Protocol: the same agent in editors.

Guarantees that what an editor shows is what is enforced, and that a closed dialog approves nothing.
Imports ``graph``, ``tools.workspace`` and ``modes``; ``clean-data`` looks at its store.
"""

__all__ = (  # modules; what is not here is the package's own
    "main",
    "store",
)
