"""``Commands``: how commands run on this machine."""

from dataclasses import dataclass

from tools.sandbox import Sandbox


@dataclass(frozen=True)
class Limits:
    """What one command may use, with all the processes that it starts."""

    memory: int = 4096
    """MiB."""
    processes: int = 512


@dataclass(frozen=True)
class Commands:
    """In a sandbox, or with the rights of whoever runs this."""

    sandbox: Sandbox | None = None
    limits: Limits = Limits()
