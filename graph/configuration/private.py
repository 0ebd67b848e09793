"""``make_private``: a file that holds what the agent has read is its owner's alone."""

import os
from pathlib import Path


def make_private(file: Path) -> None:
    """Make the file, with its folders, if it is not there; SQLite's beside it follow it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
