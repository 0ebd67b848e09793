"""``open_database``: SQLite or Postgres, by the address."""

from pathlib import Path
from typing import Literal

from modeshift.modes.errors import ConfigurationError
from modeshift.project import say_how_to_add
from modeshift.storage.database import Database
from modeshift.storage.sqlite import SqliteDatabase


def open_database(
    url: str, file: Path, *, timeout: float = 30, synchronous: Literal["normal", "full"] = "normal"
) -> Database:
    """Postgres at ``url``, or SQLite in ``file`` where that is empty; connects at the first use.

    ``timeout`` is in seconds, for a lock or a server that does not answer. ``synchronous`` is
    SQLite's. Raises ``ConfigurationError`` for a URL of another database, or without the extra.
    """
    if not url:
        return SqliteDatabase(file, timeout, synchronous)
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in ("postgresql", "postgres"):
        raise ConfigurationError(
            f"DATABASE_URL begins with {scheme!r}; give postgresql://user:password@host/database, "
            "or leave it out for SQLite"
        )
    try:
        from modeshift.storage.postgres import PostgresDatabase  # noqa: PLC0415  # an extra's
    except ImportError as error:
        raise ConfigurationError(
            f"DATABASE_URL needs what is not installed: {say_how_to_add('postgres')} ({error})"
        ) from error
    return PostgresDatabase(url, timeout)
