"""``list_own_files``: the files of the user's that no command may read or change."""

import glob
from pathlib import Path

from modeshift.configuration.settings import DATA, Settings, get_env_file, get_modes_folder
from modeshift.modes.catalog import prompts_of


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
