"""Chat models: loading them by name, binding them for a mode, asking them, explaining failures.

Guarantees that a model is asked a bounded number of times, for a bounded time, and that no error
holds a key.
"""
