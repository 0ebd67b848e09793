"""Searching files, and naming those that ``.gitignore`` does not, with rg.

rg opens files by their paths, where somebody may put a link meanwhile. So it only names files,
confined to their folder by the kernel where that is possible; what is shown comes from files that
were opened here.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from errno import EMFILE
from itertools import filterfalse
from typing import IO, BinaryIO, NamedTuple

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.workspace import ripgrep
from modeshift.tools.workspace.ripgrep import EVERY_FILE, Glob, run_ripgrep

MAX_MATCHING = 5000
"""How many files with matches are named; they come in any order, since rg searches in parallel."""
MAX_BYTES = 5_000_000
"""Of matches, of those files that are open at a time."""
MAX_FILES = 1_000_000
MAX_OPEN = 200
_NAME_FILES = (
    "--no-config",
    "--no-ignore-global",
    "--no-ignore-dot",
    "--no-require-git",
    "--no-messages",
    "--hidden",
    "--glob=!.git",
    "--null",
)
_SHOW_MATCHES = (
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
_READ = ("--crlf", "--no-mmap")
_NUMBERED = re.compile(rb"(\d+)([:-])")
_OPEN_FILES = "/dev/fd" if sys.platform == "darwin" else "/proc/self/fd"
Opened = Callable[[str], AbstractContextManager[BinaryIO]]


class Line(NamedTuple):
    """A line with a match, or one around it."""

    path: str
    """Empty if a single file was searched."""
    number: int
    text: str
    is_match: bool = True


class Found(NamedTuple):
    """The lines, in order, and why they are not all."""

    lines: list[Line]
    stopped: str


@dataclass(frozen=True)
class Query:
    """A regular expression, how many matches to look for, and in which files of a folder."""

    regex: str
    max_count: int
    glob: Glob = EVERY_FILE
    context: int = 0
    """How many lines to show before and after each match."""

    @property
    def regex_options(self) -> list[str]:
        """With "=", and "--" behind them, none of the model's words becomes an option."""
        return [f"--regexp={self.regex}", f"--max-count={self.max_count}"]

    @property
    def type_options(self) -> list[str]:
        """Spare rg most files. A type: its globs would bring back what ``.gitignore`` names."""
        names = self.glob.plain_names
        return [*(f"--type-add=asked:{name}" for name in names), "--type=asked"] if names else []


def search_file(file: int, query: Query) -> Found:
    """Search an open file; raises ``ToolFailedError`` with rg's own words where it cannot."""
    lines = list[Line]()
    stopped = _find_matches({file: ""}, query, lines, ripgrep.SECONDS)
    return Found(sorted(lines), stopped)


def search_folder(
    folder: int, query: Query, opened: Opened, leaves_out: Callable[[str], bool] = lambda _: False
) -> Found:
    """Search an open folder as ``search_file`` does, until there are ``max_count`` matches.

    ``opened`` opens a file by its path in the folder, or raises ``ToolFailedError``; it decides
    what is read. Where rg cannot be confined to the folder, every file is opened for it.
    """

    def choose(paths: list[str]) -> Iterable[str]:
        return filterfalse(leaves_out, filter(query.glob.matches, paths))

    if ripgrep.can_confine():
        options = [*_READ, *query.regex_options, *query.type_options, "--files-with-matches"]
        names, stopped = _name_files(folder, options, MAX_MATCHING, choose)
    else:
        options = [*query.type_options, "--files"]
        names, stopped = _name_files(folder, options, MAX_FILES, choose)
    lines, why = list[Line](), ""
    ends = time.monotonic() + ripgrep.SECONDS
    waiting = sorted(names, reverse=True)
    while waiting and not why and sum(line.is_match for line in lines) < query.max_count:
        next_ones, waiting = waiting[-MAX_OPEN:], waiting[:-MAX_OPEN]
        with ExitStack() as stack:
            files = {file: name for name in next_ones for file in _open(opened, name, stack)}
            why = _find_matches(files, query, lines, ends - time.monotonic())
    return Found(sorted(lines), why or stopped)


def find_files(
    folder: int,
    glob: Glob = EVERY_FILE,
    folders: set[str] | None = None,
    max_count: int = MAX_FILES,
) -> tuple[set[str], str]:
    """The files below that ``.gitignore`` does not name, why not all; adds their ``folders``."""

    def choose(paths: list[str]) -> Iterable[str]:
        if folders is not None:
            folders.update([path.rpartition("/")[0] for path in paths])
        return paths if glob is EVERY_FILE else filter(glob.matches, paths)

    return _name_files(folder, [*Query("", 0, glob).type_options, "--files"], max_count, choose)


def _open(opened: Opened, name: str, stack: ExitStack) -> Iterator[int]:
    try:
        yield stack.enter_context(opened(name)).fileno()
    except ToolFailedError as error:  # it has gone, or become a link
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == EMFILE:
            raise


def _name_files(
    folder: int, options: list[str], max_count: int, choose: Callable[[list[str]], Iterable[str]]
) -> tuple[set[str], str]:
    """Paths of files in the folder, and why they are not all."""
    names: set[str] = set()

    def collect(stdout: IO[bytes]) -> str:
        for paths in _read_paths(stdout):
            names.update(choose(paths))
            if len(names) > max_count:
                return f"there are more than {max_count} files"
        return ""

    problem, stopped = run_ripgrep([*_NAME_FILES, *options, "--", "./"], collect, folder=folder)
    if problem and not names and not stopped:
        raise ToolFailedError(problem)
    return names, stopped


def _find_matches(files: Mapping[int, str], query: Query, lines: list[Line], seconds: float) -> str:
    """Add what is found in open files, given with their names; returns why it is not all."""
    if not files:  # rg would search the folder that it is in
        return ""
    paths = {f"{_OPEN_FILES}/{file}": name for file, name in files.items()}

    def collect(stdout: IO[bytes]) -> str:
        room = MAX_BYTES
        for line in stdout:
            path, _, rest = line.rstrip(b"\r\n").partition(b"\0")
            name = paths.get(os.fsdecode(path))
            if name is None or not (parts := _NUMBERED.match(rest)):
                continue  # a word about a binary file, or the mark between two places
            text = rest[parts.end() :].decode("utf-8", "backslashreplace")
            lines.append(Line(name, int(parts[1]), text, is_match=parts[2] == b":"))
            room -= len(rest)
            if room < 0:
                return "there are many more matches"
        return ""

    shown = [*_SHOW_MATCHES, f"--context={query.context}"]
    options = [*shown, *_READ, *query.regex_options, "--", *paths]
    problem, stopped = run_ripgrep(options, collect, seconds, passed=tuple(files))
    if problem and not lines and not stopped:
        raise ToolFailedError(problem)
    return stopped


def _read_paths(stdout: IO[bytes]) -> Iterator[list[str]]:
    """The paths that rg prints, a block of them at a time: a loop for each is slower than rg."""
    rest = b""
    while block := stdout.read(1 << 16):
        paths, _, rest = (rest + block).rpartition(b"\0")
        yield os.fsdecode(paths).removeprefix("./").split("\0./")
