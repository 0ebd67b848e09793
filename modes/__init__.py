"""What a mode is, and what it may do: data and its files, catalog, permissions, verdict,
state machine, errors.

One YAML file per built-in mode lies beside the code. Imports nothing of ours.
"""
