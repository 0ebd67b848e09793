"""``PromptRules``: the user's and the project's rules, and skills by name and description."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from modeshift.configuration.last_loaded import LastLoaded, read_user_file
from modeshift.modes.errors import ModeFileError
from modeshift.modes.plain_data import parse_data
from modeshift.modes.plain_text import to_one_line

MAX_CHARACTERS = 50_000
"""Characters of all rules for one mode, of those for every mode, and of those for a folder."""
AGENTS = "AGENTS.md"
EDITORS = (".kilocode", ".roo")
STAND_INS = (".roorules", ".clinerules", ".kilocoderules")
"""Files or folders, also with ``-{slug}``: the first one counts if editors have no rules."""
_SLUG = r"(?:-([A-Za-z0-9-]+))?"
# The name of a hidden folder counts, and nothing below it.
_NAMES = r"(?:[^./][^/]*/)*(?:\.[^/]+/|[^/]*)"
IN_EDITORS = re.compile(rf"({'|'.join(map(re.escape, EDITORS))})/rules{_SLUG}(?:/{_NAMES})?")
STANDING_IN = re.compile(rf"({'|'.join(map(re.escape, STAND_INS))}){_SLUG}(?:/{_NAMES})?")
NO_RULES = (
    *(".DS_Store", ".bak", ".cache", ".crdownload", ".db", ".dmp", ".dump", ".eslintcache"),
    *(".lock", ".log", ".old", ".part", ".partial", ".pyc", ".pyo", ".stackdump", ".swo", ".swp"),
    *(".temp", ".tmp"),
)
"""Endings of files that programs leave beside the rules."""
_FOLDER = re.compile(r"rules(?:-.*)?", re.DOTALL)


class PromptRule(NamedTuple):
    """A text, and where it is from."""

    name: str
    text: str
    slug: str | None = None
    """The mode that it is for; None for every mode."""

    def render(self) -> str:
        """The rule as Markdown."""
        return f"## {self.name}\n\n{self.text.strip()}"


class PromptRules:
    """The rules of all modes; immutable."""

    def __init__(self, rules: Iterable[PromptRule] = ()) -> None:
        self._rules = tuple(rules)

    def render(self, slug: str | None) -> str:
        """The rules for one mode, or for every mode, as Markdown; cut at ``MAX_CHARACTERS``."""
        return cut("\n\n".join(rule.render() for rule in self._rules if rule.slug == slug))

    def find_problems(self, modes: Collection[str]) -> Iterator[str]:
        """A notice for rules that do not fit, and for those of a mode that is not in ``modes``."""
        for slug in sorted({rule.slug for rule in self._rules if rule.slug is not None}):
            if slug not in modes:
                yield f"rules or skills for mode {slug!r}, but there is no such mode"
        for mode in (None, *modes):
            if names := self._list_cut(mode):
                yield (
                    f"there are more than {MAX_CHARACTERS} characters of rules for "
                    f"{mode or 'every mode'}; cut or left out: {', '.join(names)}"
                )

    def _list_cut(self, slug: str | None) -> list[str]:
        rules = [rule for rule in self._rules if rule.slug == slug]
        ends = (end - 2 for end in accumulate(len(rule.render()) + 2 for rule in rules))
        return [rule.name for rule, end in zip(rules, ends, strict=True) if end > MAX_CHARACTERS]


def cut(text: str) -> str:
    """The text, or as much of it as fits into the prompt."""
    left_out = len(text) - MAX_CHARACTERS
    return (
        text if left_out <= 0 else f"{text[:MAX_CHARACTERS]}\n[{left_out} more characters left out]"
    )


def read_user_rules(folders: Iterable[Path], last: LastLoaded) -> list[PromptRule]:
    """The user's own rules: ``rules`` and ``rules-{slug}`` in these folders, where links count.

    Watches them, and adds to the notices what cannot be read.
    """
    rules: list[PromptRule] = []
    for folder in folders:
        paths = sorted(path for path in folder.glob("rules*/") if _FOLDER.fullmatch(path.name))
        last.watch(folder, *paths)
        for path in paths:
            slug = path.name.partition("-")[2] or None
            for file in sorted(path.rglob("*")):
                if not any(name.startswith(".") for name in file.relative_to(path).parent.parts):
                    last.watch(file)
                    if not file.is_dir() and not file.name.endswith(NO_RULES):
                        text = last.load(str(file), partial(read_user_file, file)) or ""
                        rules.append(PromptRule(str(file), text, slug))
    return rules


def list_rules(texts: Mapping[str, str]) -> Iterator[PromptRule]:
    """The rules among the texts of a workspace, by path."""
    if AGENTS in texts:
        yield PromptRule(AGENTS, texts[AGENTS])
    by_slug: dict[str | None, dict[str, list[PromptRule]]] = {}
    for pattern, folders in ((IN_EDITORS, EDITORS), (STANDING_IN, STAND_INS)):
        for folder in folders:
            for name, text in texts.items():
                if (match := pattern.fullmatch(name)) and match[1] == folder:
                    group = "" if pattern is IN_EDITORS else folder
                    rules = by_slug.setdefault(match[2], {}).setdefault(group, [])
                    rules.append(PromptRule(name, text, match[2]))
    for groups in by_slug.values():
        yield from next(iter(groups.values()))


def find_unused(texts: Mapping[str, str]) -> Iterator[str]:
    """A notice for each rule that is not used because another one goes before it."""
    used = {rule.name for rule in list_rules(texts)}
    for name in texts:
        if STANDING_IN.fullmatch(name) and name not in used:
            yield (
                f"{name} is not read: there are rules in the folders of .kilocode or .roo, or in "
                "another of " + ", ".join(STAND_INS)
            )


def list_nested(texts: Mapping[str, str]) -> dict[str, str]:
    """The rules that come into the prompt once a call names a file in the folder, outer first."""
    below = (name for name in texts if name.endswith(f"/{AGENTS}"))
    nested = sorted(below, key=lambda name: name.removesuffix(AGENTS))
    return {
        (folder := name.removesuffix(AGENTS)): cut(
            f"# Rules of the project for what is in {folder}\n\n{texts[name].strip()}"
        )
        for name in nested
        if not IN_EDITORS.fullmatch(name)
    }


SKILL_FOLDERS = (".kilocode", ".roo", ".agents", ".claude")
"""Folders that may have ``skills`` or ``skills-{slug}`` in them."""
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
    """The head of a ``SKILL.md``."""

    name: str
    description: str
    path: str
    """Its path in the workspace, links followed."""
    slugs: tuple[str, ...] = ()
    """The modes that it is for; none for every mode."""


def parse_skill(text: str, where: str, path: str) -> Skill:
    """Read a file that was found as ``.../skills/<name>/SKILL.md``; raises ``ModeFileError``."""
    *_, folder, name, _ = PurePosixPath(where).parts
    head = _HEAD.match(text.removeprefix("\ufeff"))
    data = parse_data(head[1], where) if head is not None else None
    if not isinstance(data, dict):
        raise ModeFileError("has no head with name and description between two lines of '---'")
    if data.get("name") != name or _NAME.fullmatch(name) is None:
        problem = f"its name {to_one_line(str(data.get('name')), 100)!r} is not its folder's"
        raise ModeFileError(f"{problem}, of small letters, digits and single dashes")
    description = data.get("description")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= MAX_DESCRIPTION:
        raise ModeFileError(f"its description is not of 1 to {MAX_DESCRIPTION} characters")
    modes = data.get("modeSlugs") or data.get("mode") or folder.partition("-")[2]
    slugs = modes if isinstance(modes, list) else [modes]
    return Skill(name, to_one_line(description, MAX_DESCRIPTION), path, tuple(filter(None, slugs)))


def list_skills(skills: Iterable[Skill]) -> Iterator[PromptRule]:
    """The rules that list the skills, one for each mode that has any."""
    by_slug: dict[str | None, list[str]] = {}
    for skill in skills:
        for slug in skill.slugs or (None,):
            line = f"- {skill.name} ({skill.path}): {skill.description}"
            by_slug.setdefault(slug, []).append(line)
    for slug, lines in by_slug.items():
        yield PromptRule("Skills", "\n".join([_HOW, "", *lines]), slug)
