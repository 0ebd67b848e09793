"""Chat models: which there are, how they are asked, and what is said when they fail.

Guarantees that a model is asked a bounded number of times, and that no key stands in an error.
Imports ``graph.messages`` and ``graph.replay``; ``graph.deps``, ``graph.think`` and ``doors``
import it.
"""

__all__ = (  # modules; what is not here is the package's own
    "bound_model",
    "loading",
    "offline",
    "optional_fields",
    "provider_errors",
    "providers",
    "retry",
    "secrets",
)
