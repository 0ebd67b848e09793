"""Permissions: which calls a pattern matches, and which paths always ask.

Guarantees that what is not certain counts as no ``allow`` and as a possible ``deny``.
"""
