"""``open_threads``: the databases, which only their owner may read; and what no command may."""

import asyncio
import errno
import glob
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from modeshift.configuration.settings import DATA, Settings, get_env_file, get_modes_folder
from modeshift.modes.catalog import prompts_of
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


def list_own_files(settings: Settings) -> tuple[Path, ...]:
    """The user's files that no command may read or change."""
    own = (get_env_file(), DATA, settings.config_folder, settings.trust_file)
    others = () if settings.workspaces is None else (settings.workspaces,)
    return (*own, *others, *list_template(settings), *list_databases(settings))


def list_template(settings: Settings) -> tuple[Path, ...]:
    """The folders of built-in modes and their prompts, unless they are the clone's."""
    folder = settings.modes_folder
    return () if folder == get_modes_folder() else (folder, prompts_of(folder))


def list_databases(settings: Settings) -> tuple[Path, ...]:
    """The files of both databases, without those that come and go with each process.

    A decision is bound to this list, and counts in another process and after a crash.
    """
    databases = settings.checkpoints, settings.sessions
    return tuple(file for database in databases for file in _list_lasting_files(database))


def list_database_files(file: Path) -> tuple[Path, ...]:
    """An SQLite file and what lies beside it: locks, the terminal's history, a file of 0.1."""
    owners = file.parent.glob(f"{glob.escape(file.name)}.owner-*")
    return (*_list_lasting_files(file), *owners)


def _list_lasting_files(file: Path) -> tuple[Path, ...]:
    real = file.resolve()  # SQLite puts its own beside this one
    return (
        file,
        Path(f"{file}.lock"),
        Path(f"{file}.signal"),
        get_history_file(file),
        Path(f"{file}.undo"),
        *(Path(f"{real}{end}") for end in ("", "-wal", "-shm") if real != file or end),
    )


def get_history_file(file: Path) -> Path:
    """The file with the messages that were typed in a terminal."""
    return Path(f"{file}.history")
