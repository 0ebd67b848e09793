"""``make serve`` says what it lacks."""

import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from modeshift.commands.serve import OURS, divide_connections
from modeshift.storage.postgres import MAX_CONNECTIONS
from tests.harness import prefork
from tests.harness.aegra import serving
from tests.harness.place import environment
from tests.harness.postgres import WHY_NOT, Postgres, find_postgres, run_postgres
from tests.harness.programs import run
from tests.harness.root import ENGINE, TEMPLATE
from tests.harness.server import free_port

SET_UP = ENGINE / "modeshift/aegra/set_up.sh"
UV = Path(sysconfig.get_path("scripts"), "uv")
URL = "postgresql://nobody:secret@127.0.0.1:9/nothing"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"DATABASE_URL": ""}, "make serve keeps threads in Postgres: set DATABASE_URL"),
        ({"WORKERS": "0"}, "WORKERS='0' is no number of processes; give 1 or more"),
        ({"PORT": "abc"}, "PORT='abc' is no port; give a number up to 65535"),
        ({}, "Postgres at 127.0.0.1/nothing cannot be used now: connection failed: "),
    ],
)
def test_it_does_not_start(settings: dict[str, str], text: str, tmp_path: Path) -> None:
    """And says so in one line, before make sets up an environment for it."""
    given = {"DATABASE_URL": URL, "PORT": str(free_port()), **settings}
    env = environment(tmp_path, ONLY_CHECK="1", **given)
    done = prefork.run("modeshift", "serve", env=env)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"modeshift: {text}")


def test_what_could_start_wants_aegra(postgres: Postgres, tmp_path: Path) -> None:
    url, port = postgres.make_database(), str(free_port())
    env = environment(tmp_path, DATABASE_URL=url, PORT=port)
    only_check = {**env, "ONLY_CHECK": "1"}
    assert prefork.run("modeshift", "serve", env=only_check).returncode == 0
    done = prefork.run("modeshift", "serve", env=env)
    assert "Aegra is not installed here: run make serve, which makes .venv-serve" in done.stderr


def test_a_clone_without_the_extra_for_postgres_may_be_served(tmp_path: Path) -> None:
    """The environment that make sets up next has it."""
    program = "import runpy, sys; sys.modules['psycopg'] = None; sys.argv[1:] = ['serve']; "
    env = environment(tmp_path, DATABASE_URL=URL, PORT=str(free_port()), ONLY_CHECK="1")
    command = [sys.executable, "-c", f"{program}runpy.run_module('modeshift', run_name='__main__')"]
    done = subprocess.run(
        command, cwd=TEMPLATE, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def write_program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def make_clone(folder: Path) -> None:
    """What the script looks at, and the programs that it calls, of which none is a Python."""
    for name in ("requirements.lock", "pyproject.toml"):
        (folder / name).touch()
    (folder / "bin").mkdir()
    for program in ("cat", "cksum"):
        (folder / "bin" / program).symlink_to(str(shutil.which(program)))


@pytest.mark.parametrize("given", ["", "bin/python3.12"])
def test_without_a_python_that_is_new_enough_make_says_what_to_do(
    tmp_path: Path, given: str
) -> None:
    """uv would download one, unasked."""
    make_clone(tmp_path)
    write_program(tmp_path / "bin/python3.12", "exit 127")  # as pyenv's are
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/uv").symlink_to(UV)
    places = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "UV_CACHE_DIR": str(tmp_path)}
    done = run("/bin/sh", SET_UP, cwd=tmp_path, env={**places, "PYTHON": given})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Aegra needs Python 3.12 or newer, and {given or 'python3.12'} is missing, older, or does "
        "not run; install it, or set PYTHON=/path/to/python3.12\n"
    )


def test_make_finds_a_python_of_pyenvs(tmp_path: Path) -> None:
    make_clone(tmp_path)
    write_program(tmp_path / "bin/python3.12", "exit 127")
    python = write_program(tmp_path / ".pyenv/versions/3.12.1/bin/python", "exit 0")
    write_program(tmp_path / ".venv/bin/uv", 'echo "$@"')
    places = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    done = run("/bin/sh", SET_UP, cwd=tmp_path, env=places)
    assert f"venv --quiet --clear --no-python-downloads --python {python} " in done.stdout


@pytest.mark.parametrize("processes", range(1, 9))
def test_all_processes_together_leave_some_of_postgres_connections(processes: int) -> None:
    assert OURS == 2 * MAX_CONNECTIONS  # the journal's and the server's
    sizes = {name: int(size) for name, size in divide_connections(processes).items()}
    assert min(sizes["SQLALCHEMY_POOL_SIZE"], sizes["LANGGRAPH_MAX_POOL_SIZE"]) > 0
    aegra = sizes["SQLALCHEMY_POOL_SIZE"] + sizes["SQLALCHEMY_MAX_OVERFLOW"]
    assert processes * (OURS + aegra + sizes["LANGGRAPH_MAX_POOL_SIZE"]) < 97
