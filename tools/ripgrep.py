"""``ripgrep``: runs rg, whose regular expressions take linear time, within bounds."""

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
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--null",
    "--color=never",
    "--max-columns=2000",
    "--max-columns-preview",
    "--no-mmap",
)


@dataclass
class Found:
    """Matches by path and line number, in order; and why they are not all."""

    matches: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line number and text. The path of a match in a file that was given is empty."""
    stopped: str = ""


def ripgrep(
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
    command = [str(program()), *_OPTIONS, *asked, "--", "./" if is_folder else "-"]
    try:
        process = subprocess.Popen(  # noqa: S603  # no shell, and no option of the model's
            command,
            stdin=DEVNULL if is_folder else target,
            stdout=PIPE,
            stderr=PIPE,
            cwd=path_of(target) if is_folder else "/",
            env={},
        )
    except (OSError, ValueError) as error:
        raise ToolFailedError(f"cannot search for {regex!r}: {error}") from error
    found = Found()
    with process:
        _bound_memory(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            found.stopped = _collect(process.stdout, found, is_left_out)
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
    if problem and not found.matches and not found.stopped:
        raise ToolFailedError(problem)
    found.matches.sort()
    return found


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


def _collect(stdout: IO[bytes], found: Found, is_left_out: Callable[[str], bool] | None) -> str:
    """Take the matches; says why there may be more."""
    room = MAX_BYTES
    for path, line in _lines(stdout):
        name = path.decode("utf-8", "surrogateescape").removeprefix("./")
        if is_left_out is not None and is_left_out(name):
            continue
        number, _, text = line.partition(b":")
        shown = text.decode("utf-8", "backslashreplace")
        found.matches.append(("" if name == "<stdin>" else name, int(number), shown))
        room -= len(path) + len(line)
        if len(found.matches) >= MAX_LINES or room < 0:
            return "there are many more matches"
    return ""


def _lines(stdout: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Path and rest of each line; a path may hold any byte but NUL, a line feed too."""
    path = b""
    for line in stdout:
        path += line
        if b"\0" in path:
            name, _, rest = path.rstrip(b"\r\n").partition(b"\0")
            yield name, rest
            path = b""


def program() -> Path:
    """Where the wheel puts rg."""
    return Path(sysconfig.get_path("scripts"), "rg")
