"""What a thread holds: its state, its journal, and what comes into it from outside.

Guarantees that a run's input or an update that does not fit is refused before any of it is saved,
that a thread which has such a value all the same can be read and continued, and that each node
knows the tools that are there by now.
"""
