"""Permissions: which calls a pattern matches, and which paths always ask.

Guarantees that what cannot be told counts as no ``allow`` and as a possible ``deny``.
"""
