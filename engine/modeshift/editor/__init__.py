"""The Agent Client Protocol: the same agent in editors.

Guarantees that what an editor shows is what is enforced, and that a closed dialog approves
nothing. Imports ``graph``, ``modeshift.tools.workspace`` and ``modes``; nothing imports it, and the project
works without it (docs/editors.md says what to delete).
"""

__all__ = ("main",)  # the public modules
