"""What reaches into private parts of libraries: a module a library, each with its reasons.

A test in ``tests/workarounds`` fails when a new version of a library no longer needs one, or has
moved what it reaches for. ``pyproject.toml`` says up to which version each was seen to hold.
"""
