"""Running a program, also in the background of a turn, and choosing the sandbox to run it in.

Guarantees that what a program started ends with it, and it with the turn; that its time, memory,
processes and output are bounded, and that it gets none of the agent's keys.
"""
