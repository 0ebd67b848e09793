"""Chat models: loading them by name, binding them for a mode, asking them, explaining failures.

Guarantees that a model is asked a bounded number of times, for a bounded time, and that no error
holds a key. Imports ``modeshift.graph.messages``; most of ``graph`` may import it, and ``doors``.
"""

__all__ = (  # the public modules
    "bound_model",
    "bound_modes",
    "loading",
    "offline",
    "price_list",
    "provider_errors",
    "providers",
    "secrets",
    "service",
    "usage",
)
