"""The engine of an agent that works in modes: everything that holds a guarantee.

``serve`` is what a clone calls. Imports nothing of the clone.
"""

from modeshift.serving import serve

__all__ = ["serve"]
