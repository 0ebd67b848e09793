"""``ProjectFiles``: a workspace's own modes, and its rules for the prompt.

They come with the folder, from anybody, so they are data until a person trusts them as they were
read.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import filterfalse, islice
from pathlib import Path

from modes.errors import InvalidCallError, ToolFailedError
from modes.plain_text import is_plain, to_one_line
from tools.workspace.ignored import IGNORE_FILES
from tools.workspace.workspace import Workspace

MODES_FILES = (".roomodes", ".kilocodemodes")
"""The later one's modes replace the earlier one's."""
AGENTS = "AGENTS.md"
EDITORS = (".kilocode", ".roo")
MAX_ENTRIES = 200
"""Of files and folders with rules, in all."""
MAX_DEPTH = 5
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 2_000_000
"""Of all files together."""
MAX_RULES_CHARACTERS = 50_000
"""Of all rules for one mode, and of those for every mode."""
_RULE = re.compile(
    rf"(?:{'|'.join(map(re.escape, EDITORS))})/rules(?:-[A-Za-z0-9-]+)?/"
    r"(?:[^./][^/]*/)*(?:[^./][^/]*)?"
)


@dataclass(frozen=True)
class ProjectFiles:
    """The files as they were read."""

    texts: dict[str, str] = field(default_factory=dict)
    """By path in the workspace."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why a file was not read, by path."""
    watched: tuple[Path, ...] = ()
    """The files and folders to watch for changes."""

    def __bool__(self) -> bool:
        """Whether there is anything to trust."""
        return bool(self.texts or self.problems)

    @cached_property
    def digests(self) -> dict[str, str]:
        """By path; also of unreadable files, so that trust is asked again once they can be read."""
        found = {**self.texts, **{name: f"\0{text}" for name, text in self.problems.items()}}
        return {
            to_one_line(name): sha256(text.encode()).hexdigest() for name, text in found.items()
        }

    @property
    def modes(self) -> dict[str, str]:
        """The texts of the modes files, lowest precedence first."""
        return {name: self.texts[name] for name in MODES_FILES if name in self.texts}

    def prompt_rules(self, slug: str | None) -> str:
        """The rules for one mode, or those for every mode, as Markdown.

        A mode's own are in ``.kilocode`` and ``.roo``; for every mode there is ``AGENTS.md``, then
        the general ones of these two. Within a folder by path; cut at ``MAX_RULES_CHARACTERS``.
        """
        text = "\n\n".join(
            f"## {name}\n\n{self.texts[name].strip()}" for name in self._list_rule_files(slug)
        )
        left_out = len(text) - MAX_RULES_CHARACTERS
        if left_out > 0:
            text = f"{text[:MAX_RULES_CHARACTERS]}\n[{left_out} more characters left out]"
        return text

    def count_rule_characters(self, slug: str | None) -> int:
        """How many characters these rules have, before they are cut."""
        return sum(len(self.texts[name]) for name in self._list_rule_files(slug))

    def _list_rule_files(self, slug: str | None) -> list[str]:
        """The files with these rules, in their order."""
        folder = "rules" if slug is None else f"rules-{slug}"
        folders = [f"{editor}/{folder}/" for editor in EDITORS]
        own = [name for one in folders for name in self.texts if name.startswith(one)]
        return [AGENTS, *own] if slug is None and AGENTS in self.texts else own

    @property
    def slugs_with_rules(self) -> list[str]:
        """The modes for which there are rules of their own."""
        folders = [name.split("/")[1] for name in self.texts if "/" in name]
        return sorted({name.removeprefix("rules-") for name in folders if name != "rules"})


def read_project(workspace: Workspace) -> ProjectFiles:
    """Read them; what cannot be read becomes a problem, not an exception. Blocks."""
    texts: dict[str, str] = {}
    problems: dict[str, str] = {}
    names = [name for name in (*MODES_FILES, AGENTS) if os.path.lexists(workspace.root / name)]
    entries = list(islice(_list_rule_entries(workspace, problems), MAX_ENTRIES + 1))
    files = [entry for entry in entries if not entry.endswith("/")]
    if len(entries) > MAX_ENTRIES:
        problems["rules"] = f"more than {MAX_ENTRIES} files and folders; all are left out"
        files = []
    room = MAX_BYTES
    for name in (*names, *files):
        try:
            text = _read(workspace, name)
        except (ToolFailedError, InvalidCallError) as error:
            problems[name] = str(error)
            continue
        room -= len(text)
        if room < 0:
            problems[name] = f"there are more than {MAX_BYTES} characters of rules before it"
        else:
            texts[name] = text
    watched = (*MODES_FILES, *IGNORE_FILES, AGENTS, *EDITORS, *entries)
    return ProjectFiles(texts, problems, tuple(workspace.root / name for name in watched))


def _read(workspace: Workspace, name: str) -> str:
    if (workspace.root / name).is_symlink():
        raise ToolFailedError("is a link, which is not followed here")
    if not is_plain(name):
        raise ToolFailedError("has a name with characters that are not shown")
    return workspace.read(workspace.resolve(name), MAX_FILE_BYTES)


def _list_rule_entries(workspace: Workspace, problems: dict[str, str]) -> Iterator[str]:
    """The folders of rules and all that is in them, except hidden files and folders."""
    for editor in EDITORS:
        if (workspace.root / editor).is_symlink():
            problems[editor] = "is a link, which is not followed here"
        elif (workspace.root / editor).is_dir():
            try:
                found = workspace.list_entries(editor, MAX_DEPTH + 1, is_left_out=_is_no_rule)
                for entry in filterfalse(_is_no_rule, found):
                    yield entry
                    if entry.endswith("/") and entry.count("/") > MAX_DEPTH + 1:
                        problems[entry] = f"is more than {MAX_DEPTH} folders deep"
                    elif not os.access(workspace.root / entry, os.R_OK):
                        problems[entry] = "cannot be read"
            except (ToolFailedError, TimeoutError) as error:
                problems[editor] = str(error) or "takes too long to list"


def _is_no_rule(entry: str) -> bool:
    return _RULE.fullmatch(entry) is None
