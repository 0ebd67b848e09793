"""Starts a module as ``python -m`` does, in a process that has already imported most of it.

One server (``multiprocessing``'s) has imported what takes seconds, and forks itself for each
module: the workers of xdist, and all that they start. The fork is a real process with its own
descriptors, environment and folder.
"""

import gc
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from fcntl import ioctl
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryFile
from termios import TIOCSCTTY
from typing import Any, NoReturn

from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO

from modeshift import project
from tests.harness.root import ENGINE, TEMPLATE

MODULES = ["modeshift.editor.main", "modeshift.commands.dev", "modeshift.__main__"]
"""Imported with all that they import; they themselves run as ``__main__``."""
LIBRARIES = (
    "pytest", "pytest_asyncio", "hypothesis", "modeshift.editor.agent", "vcr.cassette",
    "langgraph_sdk",
    "langchain_anthropic", "langchain_openai", "langgraph.checkpoint.sqlite.aio",
    # What langgraph_api imports; it itself reads the environment when it is imported.
    "langgraph_cli.cli", "cloudpickle", "croniter", "grpc_health.v1.health_pb2_grpc",
    "langgraph.pregel.remote", "langgraph_grpc_common.conversion.config",
    "opentelemetry.exporter.prometheus", "opentelemetry.sdk.metrics", "opentelemetry.sdk.trace",
    "langchain.agents", "playwright.sync_api", "prompt_toolkit", "rich.console", "sse_starlette",
    "starlette.applications", "structlog.stdlib", "truststore", "uvicorn.main", "watchfiles",
)  # fmt: skip
OURS = {"graph", "tools", "tests"}


class Started:
    """Like ``subprocess.Popen``."""

    def __init__(self, process: BaseProcess) -> None:
        self.pid = process.pid or 0
        self.kill, self.terminate = process.kill, process.terminate
        self._process = process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code


def start(
    *command: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    cwd: Path = TEMPLATE,
    is_leader: bool = False,
) -> Started:
    """Start ``python -m *command``; ``is_leader``: in a session of its own."""
    context = _server()
    state = {name: vars(_SERVER).get(name) for name in _ADDRESS}
    passed_on = [Connection(os.dup(stream)) for stream in streams]
    args = (list(command), dict(env), str(cwd), passed_on, is_leader, state)
    process = context.Process(target=_run, args=args)
    process.start()
    return Started(process)


def start_with_pipes(
    *command: str, env: Mapping[str, str], errors: int = 2, cwd: Path = TEMPLATE
) -> tuple[Started, int, int]:
    """Start it; with the end of a pipe to its standard input, and of one from its output."""
    theirs, outgoing = os.pipe()
    incoming, theirs_too = os.pipe()
    process = start(*command, env=env, streams=(theirs, theirs_too, errors), cwd=cwd)
    os.close(theirs)
    os.close(theirs_too)
    return process, outgoing, incoming


def run(
    *command: str, env: Mapping[str, str], cwd: Path = TEMPLATE, stdin: Path = Path(os.devnull)
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m *command`` like ``subprocess.run`` with ``text=True``."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err, stdin.open() as given:
        streams = (given.fileno(), out.fileno(), err.fileno())
        code = start(*command, env=env, streams=streams, cwd=cwd).wait()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


_SERVER: Any = forkserver._forkserver  # a fork has none of its own
_ADDRESS = ("_forkserver_address", "_forkserver_authkey")


@cache
def _server() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload([*LIBRARIES, *MODULES])
    _SERVER.ensure_running()
    return context


def fork_workers() -> None:
    """Have xdist fork its workers, in place of new Pythons that would import all anew."""
    gateway_io.Popen2IOMaster = _Worker  # type: ignore[assignment,misc]  # it is one


class _Worker(gateway_io.Popen2IOMaster):
    def __init__(self, _: list[str], execmodel: ExecModel) -> None:
        self.popen: Any
        self.popen, outgoing, incoming = start_with_pipes(
            "tests.harness.worker", env=os.environ, cwd=ENGINE
        )
        Popen2IO.__init__(self, open(outgoing, "wb"), open(incoming, "rb"), execmodel)  # noqa: SIM115


# In the fork.


class _ReplacedError(BaseException):
    """Carries the new command; a BaseException, to pass any ``except Exception``."""


def _replace(_: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    """Like ``os.execve``, with another module."""
    assert command[:2] == [sys.executable, "-m"]
    raise _ReplacedError(command[2:], environment)


def _run(
    command: list[str],
    environment: dict[str, str],
    folder: str,
    streams: list[Connection],
    leads: bool,
    server: dict[str, Any],
) -> None:
    gc.freeze()
    vars(_SERVER).update(server, ensure_running=lambda: None)
    if leads:
        os.setsid()
        if os.isatty(streams[0].fileno()):
            ioctl(streams[0].fileno(), TIOCSCTTY, 0)  # Ctrl-C goes to whoever controls it
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.execve = _replace  # type: ignore[assignment]  # of texts alone
    # Another clone has modules of the same names.
    elsewhere = set() if folder in (str(ENGINE), str(TEMPLATE)) else OURS
    for name in list(sys.modules):
        if name in MODULES or name.partition(".")[0] in elsewhere:
            del sys.modules[name]
    project._registered.clear()  # by the main module of a benchmark, which a child imports first
    sys.path[:0] = [folder, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    while True:
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[:] = ["-m", *command[1:]]
        try:
            runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        except _ReplacedError as error:
            command, environment = error.args
        else:
            return
