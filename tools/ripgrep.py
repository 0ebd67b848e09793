"""Runs rg, whose regular expressions take linear time, within bounds."""

import os
import re
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Timer
from typing import IO

from modes.errors import ToolFailedError
from tools.beneath import path_of

MAX_LINES = 5000
"""How many matches are collected; they come in any order, since rg searches side by side."""
MAX_BYTES = 5_000_000
MAX_FILES = 1_000_000
SECONDS = 20
MAX_MEMORY = 1 << 30
_OPTIONS = (
    "--no-config",
    "--no-ignore-global",
    "--no-ignore-dot",
    "--no-require-git",
    "--no-messages",
    "--hidden",
    "--glob=!.git",
    "--null",
)
_SEARCH = (
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--color=never",
    "--crlf",
    "--max-columns=2000",
    "--max-columns-preview",
    "--no-mmap",
)
_BINARY = re.compile(rb": WARNING: stopped searching binary file[^\n]*\n$")


@dataclass
class Found:
    """Matches by path and line number, in order; and why they are not all."""

    matches: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line number and text. The path of a match in a file that was given is empty."""
    stopped: str = ""


def search(
    target: int,
    *,
    is_folder: bool,
    regex: str,
    file_pattern: str | None,
    max_count: int,
    is_left_out: Callable[[str], bool] | None = None,
) -> Found:
    """Search an open folder or an open file; ``max_count`` is a file's, not the whole's.

    Matches in paths that are left out count for nothing. Raises ``ToolFailedError``
    with rg's own words where it cannot search.
    """
    # With "=" and "--" nothing that the model writes can become an option.
    asked = [f"--regexp={regex}", f"--max-count={max_count}"]
    if file_pattern:
        # A type and not a glob, which would bring back what .gitignore leaves out.
        asked += [f"--type-add=asked:{file_pattern}", "--type=asked"]
    options = [*_OPTIONS, *_SEARCH, *asked, "--", "./" if is_folder else "-"]
    found = Found()

    def collect(stdout: IO[bytes]) -> str:
        return _matches(stdout, found, is_left_out, is_folder=is_folder)

    problem = _run(target, options, collect, found, is_folder=is_folder)
    if problem and not found.matches and not found.stopped:
        raise ToolFailedError(problem)
    found.matches.sort()
    return found


def files(target: int) -> tuple[set[str], str]:
    """The files below an open folder that ``.gitignore`` does not name; and why not all."""
    found = Found()
    names: set[str] = set()

    def collect(stdout: IO[bytes]) -> str:
        for path in _ended(stdout, b"\0"):
            names.add(os.fsdecode(path).removeprefix("./"))
            if len(names) > MAX_FILES:
                return f"there are more than {MAX_FILES} files"
        return ""

    _run(target, [*_OPTIONS, "--files", "--", "./"], collect, found, is_folder=True)
    return names, found.stopped


def _run(
    target: int,
    options: list[str],
    collect: Callable[[IO[bytes]], str],
    found: Found,
    *,
    is_folder: bool,
) -> str:
    """Run rg until it ends or ``collect`` says why to stop; gives what it complained of."""
    try:
        process = subprocess.Popen(  # noqa: S603  # no shell, and no option of the model's
            [str(program()), *options],
            stdin=DEVNULL if is_folder else target,
            stdout=PIPE,
            stderr=PIPE,
            cwd=path_of(target) if is_folder else "/",
            env={},
        )
    except (OSError, ValueError) as error:
        raise ToolFailedError(f"cannot search: {error}") from error
    with process:
        _bound_memory(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            found.stopped = collect(process.stdout)
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        if found.stopped:
            process.kill()
        problem = process.stderr.read(2000).decode("utf-8", "replace").strip()
    if process.returncode < 0 and not found.stopped:
        found.stopped = f"it took more than {SECONDS} s, or too much memory for one line"
    return problem


def _bound_memory(pid: int) -> None:
    """A whole line is kept in memory by rg, however long it is."""
    if sys.platform == "linux":
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def version() -> str:
    """The program's name and version; empty where it cannot be run. Blocks."""
    try:
        done = subprocess.run(  # noqa: S603  # our own command
            [str(program()), "--version"], capture_output=True, check=True, env={}, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace").partition("\n")[0]


def _matches(
    stdout: IO[bytes],
    found: Found,
    is_left_out: Callable[[str], bool] | None,
    *,
    is_folder: bool,
) -> str:
    """Take the matches; says why there may be more."""
    room = MAX_BYTES
    path = b""
    for line in stdout:
        path += line
        if _BINARY.search(path):  # no match, and without a NUL; another file comes next
            path = b""
        if b"\0" not in path:
            continue  # a path may hold a line feed
        given, _, rest = path.rstrip(b"\r\n").partition(b"\0")
        path = b""
        name = os.fsdecode(given).removeprefix("./")
        if is_left_out is not None and is_left_out(name):
            continue
        number, _, text = rest.partition(b":")
        shown = text.decode("utf-8", "backslashreplace")
        found.matches.append((name if is_folder else "", int(number), shown))
        room -= len(given) + len(rest)
        if len(found.matches) >= MAX_LINES or room < 0:
            return "there are many more matches"
    return ""


def _ended(stdout: IO[bytes], end: bytes) -> Iterator[bytes]:
    """The pieces of the output, each with its end taken off."""
    rest = b""
    while block := stdout.read(1 << 16):
        *pieces, rest = (rest + block).split(end)
        yield from pieces


def program() -> Path:
    """Where the wheel puts rg."""
    return Path(sysconfig.get_path("scripts"), "rg")
