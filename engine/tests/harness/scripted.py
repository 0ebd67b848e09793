"""The scripted model of ``modeshift.testing``, by the names that the engine's tests know."""

from modeshift.testing.scripted import Asked, Call, ScriptedModel, calling

__all__ = ["Asked", "Call", "ScriptedModel", "calling"]
