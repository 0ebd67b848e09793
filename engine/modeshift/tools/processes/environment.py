"""The environment of a command: what a program needs to find its way, and no keys."""

import os
from collections.abc import Mapping

KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR")
"""All that commands get of the agent's own environment, which holds the providers' keys."""
_GIT_SETTINGS = {
    # No program that a folder's settings name, and no bare repository among the files.
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
}


def build_environment(git_settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment; ``git_settings`` are more of git's, before the user's and the repository's.

    Git gets some in any case: it starts programs before it does what it is told.
    """
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    settings = {**_GIT_SETTINGS, **(git_settings or {})}
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment
