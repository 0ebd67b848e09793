"""Starts a module as ``python -m`` does, in a process that has already imported most of it.

Each process of pytest has one server that has imported what takes seconds, and forks it for each
module. The fork is a real process with its own descriptors, environment and folder.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

ROOT = Path(__file__).parents[2]
MODULES = [
    name
    for name in ("doors.editor.main", "doors.commands.dev", "doors.commands.__main__")
    if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()  # the editor can be removed
]
"""Imported with all that they import; they themselves run as ``__main__``."""
LIBRARIES = (
    "pytest", "pytest_asyncio", "hypothesis", "vcr.cassette", "langgraph_sdk",
    "langchain_anthropic", "langchain_openai", "langgraph.checkpoint.sqlite.aio",
    # What langgraph_api imports; it itself reads the environment when it is imported.
    "langgraph_cli.cli", "cloudpickle", "croniter", "grpc_health.v1.health_pb2_grpc",
    "langgraph_grpc_common.conversion.config", "opentelemetry.exporter.prometheus",
    "opentelemetry.sdk.metrics", "opentelemetry.sdk.trace", "rich.console", "sse_starlette",
    "starlette.applications", "structlog.stdlib", "truststore", "uvicorn.main", "watchfiles",
)  # fmt: skip
OURS = {"doors", "graph", "modes", "prompts", "tools", "tests"}
MOST = 150_000
"""The most bytes of a request."""


class Started:
    """Like ``subprocess.Popen``."""

    def __init__(self, ending: int) -> None:
        self.ending = ending
        """A descriptor that can be read from once the process has ended."""
        self.pid = self._read()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self.ending], [], [], 0)[0]:
            self.returncode = self._read()
            os.close(self.ending)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self.ending], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read(self) -> int:
        said = os.read(self.ending, 8)
        assert said, "the server of tests/harness/prefork.py has ended"
        return int.from_bytes(said, signed=True)


def start(
    *command: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    cwd: Path = ROOT,
    is_leader: bool = False,
) -> Started:
    """Start ``python -m *command``; ``is_leader``: in a session of its own."""
    request = json.dumps([command, dict(env), str(cwd), is_leader])
    ours, theirs = os.pipe()
    try:
        socket.send_fds(_server(), [request.encode()], [*streams, theirs])
    finally:
        os.close(theirs)
    return Started(ours)


def run(
    *command: str, env: Mapping[str, str], cwd: Path = ROOT, stdin: Path = Path(os.devnull)
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m *command`` like ``subprocess.run`` with ``text=True``."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err, stdin.open() as given:
        streams = (given.fileno(), out.fileno(), err.fileno())
        code = start(*command, env=env, streams=streams, cwd=cwd).wait()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


@cache
def _server() -> socket.socket:
    """The socket to the server, which ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.harness.prefork", str(theirs.fileno())]
        none = subprocess.DEVNULL
        server = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=none)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


# The server; it has one thread only.


def main(channel: socket.socket) -> None:
    """Fork for each request; the fork runs the module that was asked for."""
    codes: list[int] = []
    atexit.register(lambda: codes and _end(codes[0]))  # the last one of all
    for name in (*LIBRARIES, *MODULES):
        import_module(name)
    for name in MODULES:
        del sys.modules[name]
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request, descriptors = _fork(channel)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command, environment, folder, is_leader = json.loads(request)
    if is_leader:
        os.setsid()
    os.chdir(folder)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.execve = _replace  # type: ignore[assignment]  # of texts alone
    while not codes:
        try:
            _run(command, environment)
            codes.append(0)
        except _ReplacedError as error:
            command, environment = error.args
        except SystemExit as error:
            codes.append(error.code if isinstance(error.code, int) else int(bool(error.code)))
            if isinstance(error.code, str):
                print(error.code, file=sys.stderr)  # noqa: T201


def _end(code: int) -> NoReturn:
    """Exit without tearing down the modules, which takes longer than the rest."""
    sys.stdout.flush()
    os._exit(code)


def _fork(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Fork for each request and report the fork's exit code; returns in the forks only."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    endings = dict[int, int]()
    while True:
        if woken in select.select([channel.fileno(), woken], [], [])[0]:
            os.read(woken, 1)
            _look_after(endings)
            continue
        request, descriptors, _, _ = socket.recv_fds(channel, MOST, 4)
        if not request:
            os._exit(0)
        *streams, ending = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            for descriptor in (woken, waker, ending, *endings.values()):
                os.close(descriptor)
            return request, streams
        for descriptor in streams:
            os.close(descriptor)
        endings[pid] = ending
        _tell(ending, pid)


def _look_after(endings: dict[int, int]) -> None:
    while endings:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        ending = endings.pop(pid)
        _tell(ending, os.waitstatus_to_exitcode(status))
        os.close(ending)


def _tell(ending: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(ending, number.to_bytes(8, signed=True))


class _ReplacedError(BaseException):
    """Carries the new command; a BaseException, to pass any ``except Exception``."""


def _replace(_: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    """Like ``os.execve``, with another module."""
    assert command[:2] == [sys.executable, "-m"]
    raise _ReplacedError(command[2:], environment)


def _run(command: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    folder = str(Path.cwd())
    if folder != str(ROOT):  # a clone elsewhere has modules of the same names
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
    sys.path[0] = folder
    sys.argv[1:] = command[1:]
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
