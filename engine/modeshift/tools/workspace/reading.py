"""What a model reads and changes of the workspace: lines, folders, matches, edits."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from typing_extensions import TypedDict

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import name_count
from modeshift.modes.rules.files import is_secret
from modeshift.tools.workspace.opening import list_above
from modeshift.tools.workspace.ripgrep import EVERY_FILE, Glob
from modeshift.tools.workspace.search import (
    Found,
    Line,
    Query,
    find_files,
    search_file,
    search_folder,
)
from modeshift.tools.workspace.text import (
    LineRange,
    Replacement,
    find_places,
    is_utf8,
    replace_pieces,
    show_name,
)
from modeshift.tools.workspace.workspace import Workspace

MAX_LINES = 2000
MAX_ENTRIES = 1000
MAX_DEPTH = 10_000
MAX_MATCHES = 200
MAX_CHARACTERS = 80_000
LIST_SECONDS = 10
MAX_KEPT = 200_000
"""Characters of replaced text: they stay in the thread for good."""


def read_lines(
    workspace: Workspace, path: str, start: int | None = None, count: int | None = None
) -> str:
    """Lines of a file from ``start`` on, numbered, and a notice if there are more."""
    first = max(start or 1, 1)
    most = MAX_LINES if count is None else min(max(count, 1), MAX_LINES)
    with workspace.open_file(path) as file:
        try:
            lines = LineRange.of(file, first, most)
        except ToolFailedError as error:
            raise ToolFailedError(f"{path!r} {error}") from None
    return lines.show(path)


def list_folder(
    workspace: Workspace, path: str, depth: int | None = None, glob: str | None = None
) -> str:
    """What is in a folder that ``.gitignore`` does not name; with a glob at every depth."""
    pattern = EVERY_FILE if glob is None else Glob.of(glob)
    start = 0 if path == "." else len(path) + 1
    with workspace.open_for_search(path) as (target, is_folder):
        if not is_folder:
            raise ToolFailedError(f"{path!r} is not a folder; read it with read_file")
        entries = workspace.list_entries(
            path,
            depth or (1 if glob is None else MAX_DEPTH),
            is_left_out=_left_out(workspace, path, target),
            seconds=LIST_SECONDS,
        )
        matching = (name for name in entries if pattern.matches(name[start:].rstrip("/")))
        nothing = f"{path} is empty." if glob is None else f"Nothing in {path!r} is {glob!r}."
        return "\n".join(_bounded(matching)) or nothing


def search(
    workspace: Workspace, regex: str, path: str, glob: str | None = None, context: int = 0
) -> str:
    """The lines of a file, or of the files below a folder, that match; with lines around them.

    Left out are files that ``.gitignore`` or an ignore file names, and secrets that ``path`` does
    not name.
    """
    prefix = "" if path == "." else f"{path}/"
    pattern = EVERY_FILE if glob is None else Glob.of(glob)
    query, shows_secrets = Query(regex, MAX_MATCHES + 1, pattern, context), is_secret(path)

    def leaves_out(name: str) -> bool:
        return (is_secret(name) and not shows_secrets) or workspace.ignores(f"{prefix}{name}")

    with workspace.open_for_search(path) as (target, is_folder):
        if is_folder:
            matches = search_folder(
                target, query, lambda name: workspace.opened_on_disk(f"{prefix}{name}"), leaves_out
            )
        else:
            matches = search_file(target, query)
    among = "" if glob is None else f" among {glob!r}"
    nothing = f"No match for {regex!r} in {path!r}{among}."
    return "\n".join(_show_found(matches, path, prefix)) or nothing


def _show_found(matches: Found, path: str, prefix: str) -> Iterator[str]:
    """The lines as ``grep -n`` prints them, as many as fit, and a notice if there are more."""
    room, shown = MAX_CHARACTERS, 0
    before: Line | None = None
    has_context = any(not line.is_match for line in matches.lines)
    for line in matches.lines:
        mark = ":" if line.is_match else "-"
        name = show_name(f"{prefix}{line.path}" if line.path else path)
        text = f"{name}{mark}{line.number}{mark}{line.text}"
        room -= len(text) + 1
        if room < 0 or shown + line.is_match > MAX_MATCHES:
            yield f"[more than {shown} matches: search more narrowly, with path, glob or regex]"
            return
        follows = before is None or (before.path, before.number + 1) == (line.path, line.number)
        if has_context and not follows:
            yield "--"
        yield text
        shown, before = shown + line.is_match, line
    if matches.stopped:
        yield f"[{matches.stopped}: search more narrowly, with path, glob or regex]"


def _left_out(workspace: Workspace, path: str, folder: int) -> Callable[[str], bool]:
    """Tells whether ``.gitignore`` names an entry, or everything in a folder."""
    folders: set[str] = set()
    names, stopped = find_files(folder, folders=folders)
    if stopped:
        return lambda _: False  # showing everything beats leaving out at random
    start = 0 if path == "." else len(path) + 1
    folders |= {above for folder in folders for above in list_above(folder)}

    def is_left_out(entry: str) -> bool:
        if not entry.endswith("/"):
            return entry[start:] not in names
        return entry[start:-1] not in folders and not workspace.shows_nothing(entry[:-1])

    return is_left_out


def _bounded(entries: Iterable[str]) -> Iterator[str]:
    """As many entries as fit, and a notice if there are more."""
    room = MAX_CHARACTERS
    try:
        for count, entry in enumerate(entries):
            room -= len(entry) + 1
            if count == MAX_ENTRIES or room < 0:
                yield f"[more than {count} entries: list a folder below, or give a glob]"
                return
            yield show_name(entry)
    except TimeoutError:
        yield f"[not all: it took more than {LIST_SECONDS} s; list a folder below, or give a glob]"


class Edited(TypedDict, total=False):
    """The ``artifact`` of a result: for clients, not for the model."""

    replaced: str | None
    """The text that was replaced as a whole; None for a new file. Missing if it was long, not
    UTF-8, or looked as if it held a secret."""
    line: int
    """The first line that was changed, counted from 1."""


def write_text(workspace: Workspace, path: str, text: str) -> tuple[str, Edited]:
    """Create a file, or replace the whole of one; what the model is told, and the artifact."""
    is_new, replaced = workspace.write(path, text)
    message = (
        f"{'Created' if is_new else 'Replaced'} {path} ({name_count(len(text), 'character')})."
    )
    if is_new:
        return message, Edited(replaced=None)
    if replaced is None or len(replaced) > MAX_KEPT or not is_utf8(replaced) or is_secret(path):
        return message, Edited()
    return message, Edited(replaced=replaced)


def replace_text(
    workspace: Workspace, path: str, edits: Sequence[Replacement]
) -> tuple[str, Edited]:
    """Make all of the edits in a file, or none, where one does not fit or the file has changed."""
    text = workspace.read(path)
    places = find_places(path, text, edits)
    workspace.write(path, replace_pieces(text, places), instead_of=text)
    line = text.count("\n", 0, places[0].start) + 1
    return f"Edited {path}: {name_count(len(places), 'place')}.", Edited(line=line)
