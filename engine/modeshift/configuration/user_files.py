"""``TrustFile``: the workspaces whose own modes and rules a person has accepted, as they were."""

import asyncio
import errno
import glob
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, ValidationError

from modeshift.configuration.settings import DATA, Settings, get_env_file, get_modes_folder
from modeshift.modes.catalog import prompts_of
from modeshift.modes.edges.edges import ANY
from modeshift.modes.errors import ConfigurationError, ModeFileError, describe_misfit
from modeshift.modes.plain_text import to_one_line
from modeshift.storage.database import Database
from modeshift.storage.threads import open_saver, open_store, prepare_tables
from modeshift.tools.servers import ToolDescription


def list_own_files(settings: Settings) -> tuple[Path, ...]:
    """Those that no command may read or change."""
    own = (get_env_file(), DATA, settings.config_folder, settings.trust_file)
    others = () if settings.workspaces is None else (settings.workspaces,)
    return (*own, *others, *list_template(settings), *list_databases(settings))


def list_template(settings: Settings) -> tuple[Path, ...]:
    """The folders of built-in modes and their prompts, unless they are the clone's."""
    folder = settings.modes_folder
    return () if folder == get_modes_folder() else (folder, prompts_of(folder))


def list_databases(settings: Settings) -> tuple[Path, ...]:
    """The files of both databases, but for the owners', which come and go with each process.

    A decision is bound to this list, and counts in another process and after a crash.
    """
    databases = settings.checkpoints, settings.sessions
    return tuple(file for database in databases for file in _list_lasting_files(database))


def list_database_files(file: Path) -> tuple[Path, ...]:
    """An SQLite file and those beside it: locks, a terminal's history, version 0.1's signal."""
    owners = file.parent.glob(f"{glob.escape(file.name)}.owner-*")
    return (*_list_lasting_files(file), *owners)


def _list_lasting_files(file: Path) -> tuple[Path, ...]:
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


@asynccontextmanager
async def open_threads(
    settings: Settings, file: Path
) -> AsyncIterator[tuple[Database, BaseCheckpointSaver[Any], BaseStore]]:
    """The database of the threads, Postgres or ``file``, its checkpointer and store.

    Raises ``UserError``.
    """
    database = settings.open_database(file)
    if not settings.has_postgres:
        await asyncio.to_thread(make_private, file)
    try:
        await prepare_tables(database)
        async with open_saver(database) as saver, open_store(database) as store:
            yield database, saver, store
    finally:
        await database.close()


MAX_BYTES = 2_000_000
# A file that changes in the same tick of the clock in which it was read looks unchanged.
TICK_NS = 50_000_000
T = TypeVar("T")


class LastLoaded:
    """What was loaded at one time from files of which each may change, or not load any more.

    Make it before reading the files, from the one before.
    """

    def __init__(self, before: "LastLoaded | None" = None) -> None:
        self.notices: list[str] = []
        self.lost: list[str] = []
        """The slugs of the user's modes that are not used, and the texts of files that are not."""
        self._started = time.time_ns()
        self._stamps: dict[Path, object] = {}
        self._before: dict[str, Any] = {} if before is None else before._loaded
        self._loaded: dict[str, Any] = {}

    def load(self, name: str, load: Callable[[], T | None], *, is_needed: bool = False) -> T | None:
        """What ``load`` gives, or where that raises ``ModeFileError``, what it gave before.

        Then a notice says so; if it gave nothing before, and that ``is_needed``, it is raised.
        """
        try:
            loaded = load()
        except ModeFileError as error:
            loaded = self._before.get(name)
            if loaded is None and is_needed:
                raise
            how = "is not used until you mend it" if loaded is None else "stays as it was"
            self.notices.append(f"{error}; it {how}")
        if loaded is not None:
            self._loaded[name] = loaded
        return loaded

    def has_lost(self, slug: str) -> bool:
        """Whether a mode of the user's that is not used has this slug, or may have it."""
        name = re.compile(rf"(?<![\w-]){re.escape(slug)}(?![\w-])")
        return ANY in self.lost or any(map(name.search, self.lost))

    def watch(self, *paths: Path) -> None:
        """Remember how the files are now; one that changed just before counts as changed again."""
        for path in paths:
            stamp = _stamp(path)
            is_fresh = stamp is not None and stamp[-1] > self._started - TICK_NS
            self._stamps[path] = object() if is_fresh else stamp

    def has_changed(self) -> bool:
        """Whether a file may have changed; asks the file system once for each."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        details = os.stat(path)
    except OSError:
        return None
    return (details.st_ino, details.st_size, details.st_mtime_ns, details.st_ctime_ns)


def read_user_file(file: Path) -> str | None:
    """The text of the file; None where there is none. Raises ``ModeFileError``."""
    try:
        os.lstat(file)  # raises for a missing file, and not for a dangling link
        if not file.is_file():
            raise ModeFileError(f"{file}: is not a file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ModeFileError(f"{file}: is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error


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


Digests = Mapping[str, str]
"""Of the project's files, by name."""


@dataclass(frozen=True)
class TrustedServer:
    """A workspace's MCP server as a person has accepted it: whole, to show what changes."""

    entry: Mapping[str, Any]
    """As its file had it."""
    tools: Mapping[str, ToolDescription]
    """All that may be bound, by name."""

    def find_changes(self, entry: Mapping[str, Any]) -> str:
        """How ``entry`` differs from what was accepted, in words; empty for not at all."""
        keys = [key for key in {**self.entry, **entry} if self.entry.get(key) != entry.get(key)]
        return "; ".join(
            f"{key} was {_show(self.entry.get(key))}, is now {_show(entry.get(key))}"
            for key in keys
        )


def _show(value: object) -> str:
    return "none" if value is None else to_one_line(json.dumps(value, ensure_ascii=False), 200)


class _Record(BaseModel):
    """The file: the digests of each folder's files by its path, and MCP servers by folder."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, str]]

    mcpServers: dict[str, dict[str, TrustedServer]] = {}  # noqa: N815  # its name in the file

    @property
    def folders(self) -> dict[str, dict[str, str]]:
        """Their paths are absolute."""
        return self.__pydantic_extra__


class TrustFile:
    """What is trusted by the workspace's real path, in a JSON file of the user's.

    All methods raise ``ConfigurationError`` where it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def trusted(self, folder: Path) -> Digests | None:
        """What was trusted in the folder; None for nothing."""
        return self._read().folders.get(str(folder))

    def trusted_servers(self, folder: Path) -> dict[str, TrustedServer]:
        """The MCP servers trusted in the folder, by name."""
        return self._read().mcpServers.get(str(folder), {})

    def trust_server(self, folder: Path, name: str, server: TrustedServer) -> None:
        """Record trust in an MCP server of the folder."""
        record = self._read()
        record.mcpServers.setdefault(str(folder), {})[name] = server
        self._write(record)

    def trust(self, folder: Path, digests: Digests) -> None:
        """Record trust in the folder's files."""
        record = self._read()
        record.folders[str(folder)] = dict(digests)
        self._write(record)

    def revoke(self, folder: Path) -> bool:
        """Forget the folder; returns whether it was trusted."""
        record = self._read()
        had = [entries.pop(str(folder), None) for entries in (record.folders, record.mcpServers)]
        self._write(record)
        return any(each is not None for each in had)

    def _read(self) -> _Record:
        try:
            return _Record.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _Record()
        except (OSError, ValidationError) as error:
            why = describe_misfit(error) if isinstance(error, ValidationError) else error
            raise ConfigurationError(
                f"{self.path} cannot be read, so no workspace is trusted: {why}; "
                "fix the file or remove it"
            ) from error

    def _write(self, record: _Record) -> None:
        temporary = self.path.with_name(f"{self.path.name}-{token_hex(8)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error}") from error


def find_differences(trusted: Digests, now: Digests) -> list[str]:
    """How the files differ from what was trusted, in words."""
    words = [f"{name} is new" for name in now if name not in trusted]
    words += [f"{name} is gone" for name in trusted if name not in now]
    words += [f"{name} has changed" for name in now if trusted.get(name, now[name]) != now[name]]
    return sorted(words)
