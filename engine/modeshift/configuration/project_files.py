"""``ProjectFiles``: a workspace's modes, rules and skills; and a table of files not read."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import filterfalse, islice
from pathlib import Path

from modeshift.configuration.prompt_rules import (
    AGENTS,
    EDITORS,
    IN_EDITORS,
    NO_RULES,
    SKILL_FILE,
    SKILL_FOLDERS,
    STANDING_IN,
    PromptRule,
    Skill,
    cut,
    list_nested,
    list_rules,
    list_skills,
    parse_skill,
)
from modeshift.modes.errors import InvalidCallError, ModeFileError, ToolFailedError
from modeshift.modes.plain_text import is_plain, to_one_line
from modeshift.modes.rules.files import DEPENDENCIES, get_protection, is_secret
from modeshift.tools.workspace.ignore_files import IGNORE_FILES
from modeshift.tools.workspace.ripgrep import Glob
from modeshift.tools.workspace.search import find_files
from modeshift.tools.workspace.workspace import Workspace

MODES_FILES = (".roomodes", ".kilocodemodes")
"""Files of a workspace; the last one that has a mode wins."""
MAX_ENTRIES = 200
"""How many files and folders with rules, skills, and nested ``AGENTS.md`` are read, of each."""
MAX_DEPTH = 5
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 2_000_000
"""Bytes of all files together."""


@dataclass(frozen=True)
class ProjectFiles:
    """A workspace's files as they were read."""

    texts: dict[str, str] = field(default_factory=dict)
    """The text of each file, by its path in the workspace."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why a file was not read, by path."""
    watched: tuple[Path, ...] = ()
    """The files and folders to watch for changes."""
    skills: tuple[Skill, ...] = ()
    """The skills whose text is in ``texts``."""

    def __bool__(self) -> bool:
        return bool(self.texts or self.problems)

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digests by path. An unreadable file has one: trust is asked for once it can be read."""
        contents = {**self.texts, **{name: f"\0{text}" for name, text in self.problems.items()}}
        return {
            to_one_line(name): sha256(text.encode()).hexdigest() for name, text in contents.items()
        }

    @property
    def modes(self) -> dict[str, str]:
        """The texts of the modes files, lowest precedence first."""
        return {name: self.texts[name] for name in MODES_FILES if name in self.texts}

    @cached_property
    def rules(self) -> tuple[PromptRule, ...]:
        """What the model is told in a mode, or in every mode."""
        return (*list_rules(self.texts), *list_skills(self.skills))

    @cached_property
    def rules_at(self) -> dict[str, str]:
        """Rules that the model gets once a call names a path there, by folder, with a slash."""
        skills = {
            each.path: f"# The skill {each.name}\n\n{self.texts[each.path]}" for each in self.skills
        }
        return list_nested(self.texts) | {path: cut(text) for path, text in skills.items()}


class _Reader:
    """Reads files until there is no room for more; what cannot be read becomes a problem."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.texts: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self.skills: list[Skill] = []
        self._room = MAX_BYTES

    def bound(self, names: Iterable[str], kind: str) -> list[str]:
        """The names; none at all where there are too many."""
        bounded = list(islice(names, MAX_ENTRIES + 1))
        if len(bounded) <= MAX_ENTRIES:
            return bounded
        self.problems[kind] = f"more than {MAX_ENTRIES} files and folders; all are left out"
        return []

    def read(self, name: str, *, follows: bool = False) -> None:
        """Read the file's text; that of a skill is kept under its real path."""
        try:
            if not follows and (self.workspace.root / name).is_symlink():
                raise ToolFailedError("is a link, which is not followed here")
            if not is_plain(name):
                raise ToolFailedError("has a name with characters that are not shown")
            path = self._follow(name)
            text = self.workspace.read(path, MAX_FILE_BYTES)
            self._room -= len(text)
            if self._room < 0:
                raise ToolFailedError(f"there are more than {MAX_BYTES} characters before it")
            if name.endswith(SKILL_FILE):
                if path in self.texts:
                    return
                self.skills.append(parse_skill(text, name, path))
                name = path
            self.texts[name] = text
        except (ToolFailedError, InvalidCallError, ModeFileError) as error:
            self.problems[name] = str(error)

    def _follow(self, name: str) -> str:
        """Where a path leads; refuses links to what the agent may not open, or must ask for."""
        path = self.workspace.resolve(name)
        if path != name:
            Workspace(self.workspace.root, heeds_ignore_files=True).resolve(path)
            if is_secret(path) or get_protection(path) == "deny":
                raise ToolFailedError(f"is a link to {path!r}, which may hold secrets")
        return path


def read_project(workspace: Workspace) -> ProjectFiles:
    """Read a workspace's files; one that cannot be read becomes a problem, not an error. Blocks."""
    reader = _Reader(workspace)
    rules = reader.bound(_list_rule_entries(workspace, reader.problems), "rules")
    skills = reader.bound(_list_skills(workspace, reader.problems), "skills")
    nested = reader.bound(_find_nested(workspace, AGENTS), f"**/{AGENTS}")
    for name in (*MODES_FILES, AGENTS, *rules, *skills, *nested):
        if os.path.lexists(workspace.root / name) and not name.endswith("/"):
            reader.read(name, follows=name not in (*MODES_FILES, *nested))
    folders = [folder for top in SKILL_FOLDERS for folder in (top, f"{top}/skills")]
    names = (*MODES_FILES, *IGNORE_FILES, AGENTS, *EDITORS, *folders, *rules, *skills, *nested)
    watched = tuple(workspace.root / name for name in names)
    return ProjectFiles(reader.texts, reader.problems, watched, tuple(reader.skills))


def _list_rule_entries(workspace: Workspace, problems: dict[str, str]) -> Iterator[str]:
    """The folders of rules, and all that is in them but hidden folders."""
    stand_ins = sorted(name for name in os.listdir(workspace.root) if STANDING_IN.fullmatch(name))
    for folder in (*EDITORS, *stand_ins):
        path = workspace.root / folder
        if path.is_symlink():
            problems[folder] = "is a link, which is not followed here"
        elif path.is_dir():
            try:
                depth = MAX_DEPTH + 1 if folder in EDITORS else 1
                entries = workspace.list_entries(folder, depth, is_left_out=_is_no_rule)
                for entry in filterfalse(_is_no_rule, entries):
                    yield entry
                    if entry.endswith("/") and entry.count("/") > MAX_DEPTH + 1:
                        problems[entry] = f"is more than {MAX_DEPTH} folders deep"
                    elif entry.endswith("/") and "/." in entry:
                        problems[entry] = "is a hidden folder, of which nothing is read"
                    elif not os.access(workspace.root / entry, os.R_OK):
                        problems[entry] = "cannot be read"
            except (ToolFailedError, TimeoutError) as error:
                problems[folder] = str(error) or "takes too long to list"
        elif folder in stand_ins:
            yield folder


def _is_no_rule(entry: str) -> bool:
    is_named = IN_EDITORS.fullmatch(entry) or STANDING_IN.fullmatch(entry)
    return is_named is None or entry.endswith(NO_RULES)


def _list_skills(workspace: Workspace, problems: dict[str, str]) -> Iterator[str]:
    """The path of each ``SKILL.md``, with links as they are."""
    for place in SKILL_FOLDERS:
        for folder in sorted((workspace.root / place).glob("skills*")):
            name = f"{place}/{folder.name}"
            if name.partition("-")[0] != f"{place}/skills":
                continue
            try:
                entries = [*workspace.list_entries(workspace.resolve(name), 1)]
            except (ToolFailedError, InvalidCallError, TimeoutError) as error:
                problems[name] = str(error) or "takes too long to list"
                continue
            files = (f"{name}/{Path(entry).name}/{SKILL_FILE}" for entry in entries)
            yield from (file for file in files if os.path.lexists(workspace.root / file))


def _find_nested(workspace: Workspace, called: str) -> list[str]:
    """Files of this name in subfolders, without what git ignores and what others have written."""
    if next(workspace.root.glob("[!.]*/"), None) is None:
        return []
    with workspace.open_for_search(".") as (folder, _):
        names, _ = find_files(folder, Glob.of(called))
    return sorted(
        name for name in names if "/" in name and DEPENDENCIES.isdisjoint(name.split("/"))
    )


_OF_KILO = (".kilo", ".kilocode", ".opencode")
_BY_REASON = {
    f"put what holds for every agent into {AGENTS}, or rules into .kilocode/rules/": (
        *("CLAUDE.local.md", "GEMINI.md", ".cursorrules", ".cursor/rules", ".windsurfrules"),
        *(".windsurf/rules", ".github/copilot-instructions.md", ".github/instructions"),
        *(".goosehints", ".junie/guidelines.md", ".continue/rules", ".kilo/rules"),
        *(".claude/CLAUDE.md", ".claude/rules", "AGENTS.override.md"),
    ),
    f"make {AGENTS} a link to it, or move it there": ("CLAUDE.md",),
    f"its name here is {AGENTS}": ("AGENT.md",),
    "put rules of your own into rules/ in your configuration folder": ("AGENTS.local.md",),
    "put what holds in a mode into .kilocode/rules-<mode>/": (".kilo/rules-*",),
    "it protects nothing here; .rooignore and .kilocodeignore do": (
        *(".cursorignore", ".clineignore", ".geminiignore", ".aiexclude"),
    ),
    "there are no commands of a project's own; a mode or a skill can say as much": (
        *(f"{folder}/{name}" for folder in _OF_KILO for name in ("command", "commands")),
        *(".kilocode/workflows", ".kilo/workflows", ".clinerules/workflows", ".roo/commands"),
        ".claude/commands",
    ),
    "skills are read from .kilocode/skills, .agents/skills and .claude/skills": (
        *(f"{folder}/skill" for folder in _OF_KILO),
        *(".kilo/skills", ".opencode/skills"),
    ),
    "MCP servers are read from .kilocode/mcp.json": (
        *(".kilo/mcp", ".kilo/mcp.json", ".kilocode/mcp", ".vscode/mcp.json", ".cursor/mcp.json"),
    ),
    "modes are read from .kilocodemodes": (".claude/agents", ".cursor/agents", ".github/agents"),
    "modes are read from .kilocodemodes, MCP servers from .kilocode/mcp.json; what its permissions "
    "deny is not denied here: deny it in permissions.yaml in your configuration folder": (
        *(
            f"{folder}{name}"
            for folder in ("", *(f"{folder}/" for folder in _OF_KILO))
            for name in ("kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
        ),
        *(
            f"{folder}/{name}"
            for folder in _OF_KILO
            for name in ("agent", "agents", "mode", "modes")
        ),
        *(".claude/settings.json", ".claude/settings.local.json", ".codex"),
    ),
}
UNREAD = {name: reason for reason, names in _BY_REASON.items() for name in names}
"""Why a file is not read, by its path in the workspace, which may have a ``*``."""


def find_unread(workspace: Workspace, users: Iterable[Path]) -> Iterator[str]:
    """A notice for each file of ``UNREAD`` that is there, and the user's own skills. Blocks."""
    root = workspace.root
    for name in _find_nested(workspace, "CLAUDE.md")[:10]:
        yield f"{name} is not read: its name here is {AGENTS}"
    agents = os.path.realpath(root / AGENTS)
    for pattern, instead in UNREAD.items():
        for file in sorted(root.glob(pattern)) if "*" in pattern else [root / pattern]:
            if os.path.lexists(file) and os.path.realpath(file) != agents:
                yield f"{file.relative_to(root)} is not read: {instead}"
    for skills in (path for folder in users for path in sorted(folder.glob("skills*/"))):
        yield f"{skills} is not read: no tool reads outside the workspace; copy what it needs there"
