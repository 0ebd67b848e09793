"""Searching files, and naming those that ``.gitignore`` does not, with rg.

rg opens by path, where somebody may put a link meanwhile. So it only names files, held to
their folder by the kernel where that is possible; what is shown comes from open files.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from errno import EMFILE
from typing import IO, BinaryIO

from modes.errors import ToolFailedError
from tools.workspace import ripgrep

MAX_MATCHING = 5000
"""How many files with matches are named; they come in any order, since rg searches side by side."""
MAX_BYTES = 5_000_000
MAX_FILES = 1_000_000
AT_ONCE = 200
"""How many files are open at a time."""
_NAMING = (
    "--no-config",
    "--no-ignore-global",
    "--no-ignore-dot",
    "--no-require-git",
    "--no-messages",
    "--hidden",
    "--glob=!.git",
    "--null",
)
_SHOWING = (
    "--no-config",
    "--no-messages",
    "--null",
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--color=never",
    "--max-columns=2000",
    "--max-columns-preview",
)
_READING = ("--crlf", "--no-mmap")
_OPEN_FILES = "/dev/fd" if sys.platform == "darwin" else "/proc/self/fd"
Opened = Callable[[str], AbstractContextManager[BinaryIO]]


@dataclass
class Found:
    """Matches by path and line number, in order; and why they are not all."""

    matches: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line number and text. The path of a match in a file that was given is empty."""
    stopped: str = ""


@dataclass(frozen=True)
class Query:
    """What to look for, until there are so many matches; in which files of a folder."""

    regex: str
    max_count: int
    file_pattern: str | None = None

    @property
    def matching(self) -> list[str]:
        """As options. With "=", and "--" behind them, none of the model's words becomes one."""
        return [f"--regexp={self.regex}", f"--max-count={self.max_count}"]

    @property
    def kind(self) -> list[str]:
        """A type, not a glob, which would bring back what ``.gitignore`` leaves out."""
        pattern = self.file_pattern
        return [f"--type-add=asked:{pattern}", "--type=asked"] if pattern else []


def search_file(file: int, query: Query) -> Found:
    """Search an open file; raises ``ToolFailedError`` with rg's own words where it cannot."""
    found = Found()
    _show({file: ""}, query, found, ripgrep.SECONDS)
    found.matches.sort()
    return found


def search_folder(
    folder: int,
    query: Query,
    opened: Opened,
    *,
    is_left_out: Callable[[str], bool] = lambda _: False,
    is_held: bool | None = None,
) -> Found:
    """As ``search_file``, in an open folder, until there are ``max_count`` matches.

    ``opened`` opens a file by its path in the folder, or raises ``ToolFailedError``; it
    decides what is read. Where rg is not held to the folder, it opens each file that there is.
    """
    if ripgrep.is_held() if is_held is None else is_held:
        options = [*_READING, *query.matching, *query.kind, "--files-with-matches"]
        names, stopped = _named(folder, options, MAX_MATCHING, is_left_out)
    else:
        names, stopped = _named(folder, [*query.kind, "--files"], MAX_FILES, is_left_out)
    found = Found()
    ends = time.monotonic() + ripgrep.SECONDS
    waiting = sorted(names, reverse=True)
    while waiting and len(found.matches) < query.max_count and not found.stopped:
        next_ones, waiting = waiting[-AT_ONCE:], waiting[:-AT_ONCE]
        with ExitStack() as stack:
            files = {file: name for name in next_ones for file in _open(opened, name, stack)}
            _show(files, query, found, ends - time.monotonic())
    found.matches.sort()
    found.stopped = found.stopped or stopped
    return found


def files(folder: int) -> tuple[set[str], str]:
    """The files below an open folder that ``.gitignore`` does not name; and why not all."""
    return _named(folder, ["--files"], MAX_FILES, lambda _: False)


def _open(opened: Opened, name: str, stack: ExitStack) -> Iterator[int]:
    try:
        yield stack.enter_context(opened(name)).fileno()
    except ToolFailedError as error:  # it has gone, or become a link
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == EMFILE:
            raise


def _named(
    folder: int, options: list[str], max_count: int, is_left_out: Callable[[str], bool]
) -> tuple[set[str], str]:
    """Paths of files in the folder, and why they are not all."""
    names: set[str] = set()

    def collect(stdout: IO[bytes]) -> str:
        for path in _ended(stdout, b"\0"):
            name = os.fsdecode(path).removeprefix("./")
            if is_left_out(name):
                continue
            names.add(name)
            if len(names) > max_count:
                return f"there are more than {max_count} files"
        return ""

    problem, stopped = ripgrep.run([*_NAMING, *options, "--", "./"], collect, folder=folder)
    if problem and not names and not stopped:
        raise ToolFailedError(problem)
    return names, stopped


def _show(files: Mapping[int, str], query: Query, found: Found, seconds: float) -> None:
    """Add the matches in open files, given with their names."""
    paths = {f"{_OPEN_FILES}/{file}": name for file, name in files.items()}

    def collect(stdout: IO[bytes]) -> str:
        room = MAX_BYTES
        for line in stdout:
            path, _, rest = line.rstrip(b"\r\n").partition(b"\0")
            name = paths.get(os.fsdecode(path))
            if name is None:  # a word about a binary file
                continue
            number, _, text = rest.partition(b":")
            shown = text.decode("utf-8", "backslashreplace")
            found.matches.append((name, int(number), shown))
            room -= len(rest)
            if room < 0:
                return "there are many more matches"
        return ""

    if paths:  # else rg searches what it stands in
        options = [*_SHOWING, *_READING, *query.matching, "--", *paths]
        problem, found.stopped = ripgrep.run(options, collect, seconds, passed=tuple(files))
        if problem and not found.matches and not found.stopped:
            raise ToolFailedError(problem)


def _ended(stdout: IO[bytes], end: bytes) -> Iterator[bytes]:
    """The pieces of the output, each with its end taken off."""
    rest = b""
    while block := stdout.read(1 << 16):
        *pieces, rest = (rest + block).split(end)
        yield from pieces
