"""The scripted model of ``modeshift.testing``, by the names that the engine's tests know."""

from modeshift.testing.scripted import Call, ModelRequest, ScriptedModel, calling

__all__ = ["Call", "ModelRequest", "ScriptedModel", "calling"]
