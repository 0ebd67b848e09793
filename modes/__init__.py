"""What a mode is, and what it may do: data, files, catalog, permissions, verdict, machine.

One YAML file per built-in mode lies beside the code. Imports nothing of ours.
"""
