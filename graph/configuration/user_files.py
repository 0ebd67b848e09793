"""Files of the user's own configuration, which may be links, and may be anything."""

import os
from pathlib import Path

from modes.errors import ModeFileError

MAX_BYTES = 2_000_000


def read_user_file(file: Path) -> str | None:
    """The text of the file; None where there is none.

    Raises ``ModeFileError``.
    """
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error
    try:
        if not file.is_file():
            raise ModeFileError(f"{file}: is not a file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ModeFileError(f"{file}: is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error
