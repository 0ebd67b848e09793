"""What the tests of a clone use. Nothing of the engine imports it."""

from modeshift.testing.check import check_agent

__all__ = ["check_agent"]
