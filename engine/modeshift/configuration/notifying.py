"""``build_notifier``: tells whom ``NOTIFY`` names that a thread waits."""

import shlex
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from modeshift.configuration.settings import LOOPBACK, MIN_TOKEN, Settings
from modeshift.modes.errors import ConfigurationError
from modeshift.threads.notifier import Notifier


def build_notifier(settings: Settings) -> Notifier | None:
    """The notifier; None where ``NOTIFY`` is empty. Raises ``ConfigurationError``."""
    if not settings.notify:
        return None
    has_content = settings.notify_content
    if "://" in settings.notify:
        url, secret = urlsplit(settings.notify), settings.notify_secret.get_secret_value()
        if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK):
            raise ConfigurationError(
                f"NOTIFY={settings.notify!r}: give an https address, or http on this machine"
            )
        if len(secret) < MIN_TOKEN:
            raise ConfigurationError(
                f"NOTIFY with an address needs NOTIFY_SECRET, of {MIN_TOKEN} characters or more"
            )
        return Notifier(url=settings.notify, secret=secret.encode(), has_content=has_content)
    try:
        words = shlex.split(settings.notify)
    except ValueError as error:
        raise ConfigurationError(f"NOTIFY={settings.notify!r}: {error}") from error
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise ConfigurationError(f"NOTIFY={settings.notify!r}: there is no such program")
    workspace = settings.workspaces or settings.workspace
    if Path(program).resolve().is_relative_to(workspace.resolve()):
        raise ConfigurationError(
            f"NOTIFY={settings.notify!r} is in the workspace, where the agent may write"
        )
    return Notifier([str(Path(program).absolute()), *words[1:]], has_content=has_content)
