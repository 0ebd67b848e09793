"""What a mode is and what it may do: the modes' files, their rules, the verdict, the machine.

Guarantees that one pure function decides on every tool call (``policy.verdict``), from the mode,
the rules and the table of effects. Each YAML file here is a mode.
"""
