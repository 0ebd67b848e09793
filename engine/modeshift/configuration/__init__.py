"""The user's and the project's files, and the agent that is built from them.

Guarantees that a file of a workspace counts only once a person has trusted it, and that a file
that does not load changes nothing.
"""
