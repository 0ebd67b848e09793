"""The ``read`` group: read, list and search files in the workspace."""

from collections.abc import Callable, Iterable, Iterator

from modes.errors import ToolFailedError
from modes.rules.protected_paths import is_secret
from tools.deps import ToolDeps
from tools.tool import Tool
from tools.workspace.encoding import show_name
from tools.workspace.line_range import LineRange
from tools.workspace.search import Query, find_files, search_file, search_folder
from tools.workspace.workspace import Workspace

MAX_LINES = 2000
MAX_ENTRIES = 1000
MAX_MATCHES = 200
MAX_CHARACTERS = 80_000
LIST_SECONDS = 10


def read_tools(deps: ToolDeps) -> list[Tool]:
    """The tools of the group; their paths arrive resolved and judged."""
    workspace = deps.workspace

    def read_file(path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Read a text file; lines come numbered from 1.

        Args:
            path: The file, relative to the workspace.
            offset: The first line to show; 1 by default.
            limit: How many lines to show at most.
        """
        start = max(offset or 1, 1)
        count = MAX_LINES if limit is None else min(max(limit, 1), MAX_LINES)
        with workspace.open_file(path) as file:
            try:
                found = LineRange.of(file, start, count)
            except ToolFailedError as error:
                raise ToolFailedError(f"{path!r} {error}") from None
        lines = [f"{number:>5} {line}" for number, line in enumerate(found.lines, start)]
        return "\n".join([*lines, *_notices(path, found)])

    def list_files(path: str = ".", recursive: bool = False) -> str:
        """List a folder; the names of folders end in "/". What .gitignore names is left out.

        Args:
            path: The folder, relative to the workspace.
            recursive: Whether to list the folders below it too.
        """
        with workspace.open_for_search(path) as (target, is_folder):
            if not is_folder:
                raise ToolFailedError(f"{path!r} is not a folder; read it with read_file")
            entries = workspace.list_entries(
                path,
                recursive,
                is_left_out=_left_out(workspace, path, target),
                seconds=LIST_SECONDS,
            )
            return "\n".join(_bounded(entries)) or f"{path} is empty."

    def search_files(regex: str, path: str = ".", file_pattern: str | None = None) -> str:
        """Search files for a regular expression (Rust syntax). What .gitignore names is left out.

        Files that look as if they held a secret are left out too, unless path names one.

        Args:
            regex: What to look for, line by line.
            path: The folder or file to search, relative to the workspace.
            file_pattern: Only files whose name matches this glob, such as "*.py".
        """
        prefix = "" if path == "." else f"{path}/"
        query = Query(regex, MAX_MATCHES + 1, file_pattern)
        with workspace.open_for_search(path) as (target, is_folder):
            if is_folder:
                found = search_folder(
                    target,
                    query,
                    lambda name: workspace.opened_on_disk(f"{prefix}{name}"),
                    is_left_out=(lambda _: False) if is_secret(path) else is_secret,
                )
            else:
                found = search_file(target, query)
        matches = [
            f"{show_name(f'{prefix}{name}' if is_folder else path)}:{number}:{line}"
            for name, number, line in found.matches
        ]
        lines = _fitting(matches, MAX_MATCHES)
        if len(lines) < len(matches):
            lines.append(f"[more than {len(lines)} matches: search more narrowly]")
        elif found.stopped:
            lines.append(f"[{found.stopped}: search more narrowly]")
        return "\n".join(lines) or f"No match for {regex!r} in {path!r}."

    return [
        Tool.of(read_file, "read", paths=("path",)),
        Tool.of(list_files, "read", paths=("path",), reads_below=True),
        Tool.of(search_files, "read", paths=("path",), reads_below=True),
    ]


def _notices(path: str, found: LineRange) -> Iterator[str]:
    """What is not shown, and why."""
    end = found.start + len(found.lines) - 1
    if found.last == 0:
        yield f"{path} is empty."
    elif found.last is None and not found.lines:
        yield f"[{path}: line {found.start} was not reached in {found.read} of {found.size} bytes]"
    elif found.last is None:
        yield f"[{path} continues after line {end}; it has {found.size} bytes]"
    elif not found.lines:
        yield f"{path} has {found.last} lines; nothing from line {found.start}."
    elif end < found.last:
        yield f"[{path} goes on to line {found.last}]"


def _left_out(workspace: Workspace, path: str, folder: int) -> Callable[[str], bool]:
    """Tells whether ``.gitignore`` names an entry, or everything in a folder."""
    names, stopped = find_files(folder)
    if stopped:
        return lambda _: False  # showing everything beats leaving out at random
    prefix = "" if path == "." else f"{path}/"
    shown = {f"{prefix}{name}" for name in names}
    folders = {f"{folder}/" for name in shown for folder in _above(name)}

    def is_left_out(entry: str) -> bool:
        if entry in shown or entry in folders:
            return False
        return not (entry.endswith("/") and workspace.shows_nothing(entry[:-1]))

    return is_left_out


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _bounded(entries: Iterable[str]) -> Iterator[str]:
    """As many entries as fit, and a notice if there are more."""
    room = MAX_CHARACTERS
    try:
        for count, entry in enumerate(entries):
            room -= len(entry) + 1
            if count == MAX_ENTRIES or room < 0:
                yield f"[more than {count} entries: list a folder below]"
                return
            yield show_name(entry)
    except TimeoutError:
        yield f"[not all: it took more than {LIST_SECONDS} s; list a folder below]"


def _fitting(lines: list[str], count: int) -> list[str]:
    room = MAX_CHARACTERS
    fitting = []
    for line in lines[:count]:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    return fitting
