"""``make clean-data``: remove the threads and waiting approvals that the dev server keeps."""

from collections.abc import Iterator
from pathlib import Path

from doors.command_line import run
from graph.settings import load_settings
from modes.errors import ConfigurationError

SIGNATURE = b"SQLite format 3\0"


def main() -> Iterator[str]:
    """What was removed; raises ``UserError`` for a file that is no database."""
    file = load_settings().checkpoints
    if not file.exists():
        yield f"{file} is not there; nothing to remove"
        return
    with file.open("rb") as stream:
        start = stream.read(len(SIGNATURE))
    if start not in (b"", SIGNATURE):
        raise ConfigurationError(f"CHECKPOINTS={str(file)!r} is no SQLite database; left alone")
    for part in (file, *(Path(f"{file}{suffix}") for suffix in ("-wal", "-shm"))):
        if part.exists():
            part.unlink()
            yield f"{part}: removed"


if __name__ == "__main__":
    run(main, __doc__)
