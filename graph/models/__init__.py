"""Chat models: loading them by name, binding them for a mode, asking them, explaining failures.

Guarantees that a model is asked a bounded number of times, for a bounded time, and that no error
holds a key. Imports ``graph.messages`` and ``graph.replay``; ``graph.deps``, ``graph.state``,
``graph.think``, ``graph.configuration`` and ``doors.commands`` may import it.
"""

__all__ = (  # the public modules
    "bound_model",
    "bound_modes",
    "loading",
    "offline",
    "provider_errors",
    "providers",
    "secrets",
    "service",
    "usage",
)
