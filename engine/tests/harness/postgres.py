"""A Postgres of the tests' own: on loopback, in a temporary folder, one to a test process."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import psycopg

from tests.harness.server import free_port

USER = "postgres"
WHY_NOT = "Postgres is not installed (apt install postgresql)"


def find_postgres() -> Path | None:
    """The folder of its newest programs; None where it is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    if (program := shutil.which("initdb")) is not None:
        folders.append(Path(program).resolve().parent)
    return next((folder for folder in reversed(folders) if (folder / "postgres").exists()), None)


class Postgres:
    """A server that runs; ``stop`` and ``start`` it as often as you like."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._data = folder / "data"
        self._folder = folder
        self.port = free_port()
        # As root it refuses to run.
        self._user = USER if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run(
            "initdb", "-A", "trust", "-E", "UTF8", "-U", USER, "--no-sync", "-D", str(self._data)
        )
        self.start()

    def _run(self, program: str, *args: str) -> None:
        log = self._folder / "programs.log"
        with log.open("ab") as output:
            subprocess.run(
                [self._programs / program, *args],
                user=self._user,
                cwd=self._folder,
                stdout=output,
                stderr=output,
                check=True,
            )

    def start(self) -> None:
        """Returns when it answers."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self._folder}"
        options += " -c fsync=off -c max_connections=400"
        log = str(self._folder / "postgres.log")
        self._run("pg_ctl", "start", "-w", "-D", str(self._data), "-l", log, "-o", options)

    def stop(self) -> None:
        """As if its machine were gone: nobody is told."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self._data))

    def make_database(self) -> str:
        """The URL of a new one."""
        name = f"t{uuid4().hex}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"


@contextmanager
def run_postgres(programs: Path) -> Iterator[Postgres]:
    """One that is stopped, and its folder removed, at the end."""
    folder = Path(mkdtemp(prefix="postgres-", dir="/tmp"))
    try:
        server = Postgres(programs, folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
