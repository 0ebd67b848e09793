"""Aegra: the same agent in several processes, on Postgres. ``make serve`` starts it.

Guarantees on it what ``modeshift.server`` guarantees on the dev server, and that a thread has one
run at a time, whichever process runs it. Aegra needs Python 3.12 and an environment of its own.
"""
