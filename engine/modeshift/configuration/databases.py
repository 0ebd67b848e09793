"""``open_threads``, ``make_private``: the database of threads, which only its owner may read."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from modeshift.configuration.settings import Settings
from modeshift.modes.errors import ConfigurationError
from modeshift.storage.database import Database
from modeshift.storage.threads import open_saver, open_store, prepare_tables


@asynccontextmanager
async def open_threads(
    settings: Settings, file: Path
) -> AsyncIterator[tuple[Database, BaseCheckpointSaver[Any], BaseStore]]:
    """The database with the threads, Postgres or ``file``, its checkpointer and its store.

    Raises ``UserError``.
    """
    if not settings.has_postgres:
        await asyncio.to_thread(make_private, file)
    async with settings.open_database(file) as database:
        await prepare_tables(database)
        async with open_saver(database) as saver, open_store(database) as store:
            yield database, saver, store


def list_kept(settings: Settings) -> list[Path]:
    """The files of threads and of sessions that there are; in Postgres one database has both."""
    if settings.has_postgres:
        return [settings.checkpoints]
    files = dict.fromkeys((settings.checkpoints, settings.sessions))
    return [file for file in files if file.exists()]


def make_private(file: Path) -> None:
    """Make the file, with its folders, if it is not there; only its owner may read it.

    The files that SQLite makes beside it get the same permissions. Raises ``ConfigurationError``.
    """
    problem: str | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # One that is there is not opened: closing it ends the locks that SQLite has on it in this
        # process, and whoever closes the database next removes what only its log has yet.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        if not file.is_file():
            problem = "it is no file"
        elif os.statvfs(file).f_flag & os.ST_RDONLY:
            problem = os.strerror(errno.EROFS)
        elif not os.access(file, os.R_OK | os.W_OK):
            problem = "it is read-only, or another user's"
        elif not os.access(file.parent, os.W_OK):
            problem = "its folder is read-only"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise ConfigurationError(f"{str(file)!r} cannot be written: {problem}; see make doctor")
