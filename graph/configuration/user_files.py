"""Files of the user's own: configuration, which may be a link or anything else, and databases."""

import os
from pathlib import Path

from modes.errors import ModeFileError

MAX_BYTES = 2_000_000


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

    The files that SQLite makes beside it get the same permissions.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
