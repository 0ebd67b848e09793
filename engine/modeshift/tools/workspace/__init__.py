"""The folder that the agent works in: paths, opening, reading, searching, replacing files.

Guarantees that exactly the path that was judged is opened, below the root and through no link,
and that a write happens whole or not at all, and none of what an ignore file names.
"""
