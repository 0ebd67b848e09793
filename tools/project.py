"""``ProjectFiles``: the files of a workspace that say what the agent is to do in it.

Whoever wrote the folder wrote them, so they are data until a person trusts them, as
they were read: modes, and rules for the prompt.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

from modes.errors import InvalidCallError, ToolFailedError
from tools.workspace import Workspace

MODES_FILES = (".roomodes", ".kilocodemodes")
"""The later one's modes replace the earlier one's."""
AGENTS = "AGENTS.md"
EDITORS = (".kilocode", ".roo")
MAX_ENTRIES = 200
"""Of files and folders with rules, in all."""
MAX_FILE_BYTES = 1_000_000
MAX_RULES_CHARACTERS = 50_000
"""Of all rules for one mode."""


@dataclass(frozen=True)
class ProjectFiles:
    """The files as they were read, once."""

    texts: dict[str, str] = field(default_factory=dict)
    """By path in the workspace."""
    problems: tuple[str, ...] = ()
    watched: tuple[Path, ...] = ()
    """What to look at to see whether something has changed."""

    @property
    def digest(self) -> str:
        """Differs where a name or a byte does, and where something could not be read."""
        digest = sha256()
        for part in (*(part for item in self.texts.items() for part in item), *self.problems):
            data = part.encode()
            digest.update(len(data).to_bytes(8) + data)
        return digest.hexdigest()

    @property
    def modes(self) -> dict[str, str]:
        """The texts of the modes files, the weaker first."""
        return {name: self.texts[name] for name in MODES_FILES if name in self.texts}

    def rules(self, slug: str) -> str:
        """The rules for a mode as Markdown, in order, cut at ``MAX_RULES_CHARACTERS``.

        The mode's own of ``.kilocode`` and ``.roo``, then ``AGENTS.md``, then the
        general ones of ``.kilocode`` and ``.roo``; within a folder by path.
        """
        own = [f"{editor}/rules-{slug}/" for editor in EDITORS]
        general = [f"{editor}/rules/" for editor in EDITORS]
        names = [
            name
            for place in (*own, AGENTS, *general)
            for name in self.texts
            if name == place or (place.endswith("/") and name.startswith(place))
        ]
        text = "\n\n".join(f"## {name}\n\n{self.texts[name].strip()}" for name in names)
        left_out = len(text) - MAX_RULES_CHARACTERS
        if left_out > 0:
            text = f"{text[:MAX_RULES_CHARACTERS]}\n[{left_out} more characters left out]"
        return text

    @property
    def slugs_with_rules(self) -> list[str]:
        """The modes for which there are rules of their own."""
        folders = [name.split("/")[1] for name in self.texts if "/" in name]
        return sorted({name.removeprefix("rules-") for name in folders if name != "rules"})


def read_project(workspace: Workspace) -> ProjectFiles:
    """Read them; what cannot be read is a problem, and no exception. Blocks."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    watched = [workspace.root / name for name in (*MODES_FILES, AGENTS, *EDITORS)]
    names = [name for name in (*MODES_FILES, AGENTS) if os.path.lexists(workspace.root / name)]
    entries = list(islice(_rule_entries(workspace, problems), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        problems.append(f"more than {MAX_ENTRIES} files and folders with rules: all are left out")
        entries = []
    watched += [workspace.root / name for name in entries]
    for name in (*names, *(entry for entry in entries if not entry.endswith("/"))):
        try:
            texts[name] = workspace.read(name, MAX_FILE_BYTES)
        except (ToolFailedError, InvalidCallError) as error:
            problems.append(str(error))
    return ProjectFiles(texts, tuple(problems), tuple(watched))


def _rule_entries(workspace: Workspace, problems: list[str]) -> Iterator[str]:
    """The folders of rules and all that is in them, but for hidden files."""
    for editor in EDITORS:
        if not (workspace.root / editor).is_dir():
            continue
        try:
            for folder in workspace.entries(editor, recursive=False):
                if re.fullmatch(f"{re.escape(editor)}/rules(-[A-Za-z0-9-]+)?/", folder):
                    yield folder
                    for name in workspace.entries(folder, recursive=True):
                        if "/." not in name.removeprefix(editor):
                            yield name
        except (ToolFailedError, InvalidCallError) as error:
            problems.append(str(error))
