"""Skills: folders with a ``SKILL.md``, of which the model is told name and description."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from modeshift.graph.configuration.prompt_rules import Rule
from modeshift.modes.errors import ModeFileError
from modeshift.modes.files.bounded_yaml import parse_data
from modeshift.modes.plain_text import to_one_line

SKILL_FOLDERS = (".kilocode", ".roo", ".agents", ".claude")
"""With ``skills`` or ``skills-{slug}`` in them."""
SKILL_FILE = "SKILL.md"
MAX_DESCRIPTION = 1024
_NAME = re.compile(r"(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*")
_HEAD = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_HOW = (
    "Where you have read_file, and one of them is for what you do, read its file with it first; "
    "you are told then what it says."
)


@dataclass(frozen=True)
class Skill:
    """What stands at the head of a ``SKILL.md``."""

    name: str
    description: str
    path: str
    """In the workspace, links followed."""
    slugs: tuple[str, ...] = ()
    """The modes that it is for; none for every mode."""


def parse_skill(text: str, found: str, path: str) -> Skill:
    """Read a file that was found as ``.../skills/<name>/SKILL.md``; raises ``ModeFileError``."""
    *_, folder, name, _ = PurePosixPath(found).parts
    head = _HEAD.match(text.removeprefix("\ufeff"))
    data: Any = parse_data(head[1], found) if head is not None else None
    if not isinstance(data, dict):
        raise ModeFileError("has no head with name and description between two lines of '---'")
    if data.get("name") != name or _NAME.fullmatch(name) is None:
        problem = f"its name {to_one_line(str(data.get('name')), 100)!r} is not its folder's"
        raise ModeFileError(f"{problem}, of small letters, digits and single dashes")
    description = data.get("description")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= MAX_DESCRIPTION:
        raise ModeFileError(f"its description is not of 1 to {MAX_DESCRIPTION} characters")
    given = data.get("modeSlugs") or data.get("mode") or folder.partition("-")[2]
    slugs = given if isinstance(given, list) else [given]
    return Skill(name, to_one_line(description, MAX_DESCRIPTION), path, tuple(filter(None, slugs)))


def list_skills(skills: Iterable[Skill]) -> Iterator[Rule]:
    """What the model is told of them, in each mode that they are for."""
    by_slug: dict[str | None, list[str]] = {}
    for skill in skills:
        for slug in skill.slugs or (None,):
            line = f"- {skill.name} ({skill.path}): {skill.description}"
            by_slug.setdefault(slug, []).append(line)
    for slug, lines in by_slug.items():
        yield Rule("Skills", "\n".join([_HOW, "", *lines]), slug)
