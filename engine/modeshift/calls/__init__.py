"""Whether a call may run, what a person is asked, and what their decision applies to.

Guarantees that a decision answers one question, and that an approval runs these arguments in this
thread, mode and workspace once.
"""
