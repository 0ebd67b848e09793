"""This project's own files on the machine, as the settings place them."""

from pathlib import Path

from modeshift.graph.settings import DATA, Settings, get_env_file, get_modes_folder
from modeshift.modes.catalog import prompts_of


def list_own_files(settings: Settings) -> tuple[Path, ...]:
    """Those that no command may read or change."""
    own = (get_env_file(), DATA, settings.config_folder, settings.trust_file)
    return (*own, *list_template(settings), *list_databases(settings))


def list_template(settings: Settings) -> tuple[Path, ...]:
    """The folders of built-in modes and their prompts, unless they are the clone's."""
    folder = settings.modes_folder
    return () if folder == get_modes_folder() else (folder, prompts_of(folder))


def list_databases(settings: Settings) -> tuple[Path, ...]:
    """The files of both databases."""
    databases = settings.checkpoints, settings.sessions
    return tuple(file for one in databases for file in list_database_files(one))


def list_database_files(file: Path) -> tuple[Path, ...]:
    """An SQLite file and those beside it: locks, the mailbox's signal, a terminal's history."""
    real = file.resolve()  # SQLite puts its own beside this one
    return (
        file,
        Path(f"{file}.lock"),
        Path(f"{file}.signal"),
        get_history_file(file),
        *(Path(f"{real}{end}") for end in ("", "-wal", "-shm") if real != file or end),
    )


def get_history_file(file: Path) -> Path:
    """Where the messages are kept that were typed in a terminal."""
    return Path(f"{file}.history")
