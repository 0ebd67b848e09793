"""What a mode is, and what it may do: data, catalog, verdict, state machine, errors.

One YAML file per built-in mode lies beside the code. Imports nothing of ours.
"""
