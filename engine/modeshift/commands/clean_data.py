"""``make clean-data``: remove the server's threads and the sessions of editors."""

import asyncio
import fcntl
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

from modeshift.configuration.databases import list_database_files
from modeshift.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.storage.threads import drop_tables

SIGNATURE = b"SQLite format 3\0"


def main() -> Iterator[str]:
    """Remove them; raises ``UserError`` for a file that is no database, or is in use."""
    settings = load_settings()
    if settings.has_postgres:
        yield from asyncio.run(drop_tables(settings.open_database()))
        rmtree(f"{settings.checkpoints}.undo", ignore_errors=True)
        return
    files = {"CHECKPOINTS": settings.checkpoints, "SESSIONS": settings.sessions}
    for name, file in files.items():
        if file.exists():
            with file.open("rb") as stream:
                start = stream.read(len(SIGNATURE))
            if start not in (b"", SIGNATURE):
                raise ConfigurationError(
                    f"{name}={str(file)!r} is not an SQLite database; left alone"
                )
    for file in files.values():
        if any(map(_is_held, list_database_files(file))):
            raise ConfigurationError(
                f"a server, a chat or an editor is at work with {file}; stop it first"
            )
    for file in files.values():
        parts = [part for part in list_database_files(file) if part.exists()]
        if not file.exists():
            yield f"{file} is not there; nothing to remove"
        for part in parts:
            part.unlink() if part.is_file() else rmtree(part)
            yield f"{part}: removed"


def _is_held(file: Path) -> bool:
    """Whether a server, a chat or an editor's agent has a lock on the file, of either kind."""
    if ".lock" not in file.name and ".owner-" not in file.name:
        return False
    try:
        with file.open("r+b") as locks:
            fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(locks, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
