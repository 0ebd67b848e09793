"""Aegra, served as ``make serve`` serves it, in a folder of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.root import ENGINE
from tests.harness.server import Server

PYTHON = ENGINE / ".venv-serve/bin/python"
IS_THERE = (PYTHON.parent.parent / ".ready").exists()
WHY_NOT = "there is no .venv-serve for Aegra (make .venv-serve/.ready makes it, with Python 3.12)"


class AegraServer(Server):
    """A clone in ``folder``; ``url`` is the Postgres that it shares with others."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.database = url

    def serve(self, *, workers: int, **settings: str) -> None:
        """As ``make serve`` does; returns when it answers."""
        command = ("modeshift", "serve", "--port", str(self.port), "--workers", str(workers))
        self.start(*command, **settings)

    def command(self, *command: str, **settings: str) -> Any:
        return self.spawn(PYTHON, *command, DATABASE_URL=self.database, **settings)


@contextmanager
def serving(folder: Path, url: str, workers: int = 2, **settings: str) -> Iterator[AegraServer]:
    """One that runs during the block."""
    server = AegraServer(folder, url)
    server.workspace = Path(settings.get("WORKSPACE", settings.get("WORKSPACES", server.workspace)))
    server.serve(workers=workers, **settings)
    try:
        yield server
    finally:
        server.kill()
