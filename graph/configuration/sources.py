"""``Sources``: where modes, rules and permissions come from, read again when they change.

Built-in (``modes/*.yaml`` of the clone) < global (the user's configuration folder) <
project (the workspace, if it is trusted). If a file does not load, its last version that did
stays in effect, if there is one; a notice says so.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graph.configuration.project_files import MAX_RULES_CHARACTERS, ProjectFiles, read_project
from graph.configuration.trust import TrustFile, find_differences
from graph.configuration.user_files import read_user_file
from graph.configuration.watch import Watch
from graph.settings import Settings
from modes.catalog import Catalog, layer_modes, prompts_of, with_prompt, with_source
from modes.errors import ConfigurationError, ModeFileError
from modes.files.modes_file import ModesFile, parse_mode, parse_modes, parse_permissions
from modes.mode import Level, Mode, SourcedPermissions
from modes.plain_text import to_one_line
from modes.rules.matching import EVERY
from modes.rules.permissions import Kind, Rules, check_permissions
from modes.toolspec import ToolSpec
from prompts import FOLDER as PROMPTS
from tools import GROUPS
from tools.toolbox import tool_specs
from tools.workspace.workspace import Workspace

GLOBAL_FILES = ("custom_modes.json", "custom_modes.yaml")
"""The later one's modes replace the earlier one's."""
PERMISSIONS = "permissions.yaml"


@dataclass(frozen=True)
class LoadedFiles:
    """What was loaded, all sources merged."""

    catalog: Catalog
    project: ProjectFiles
    """The workspace's files that are trusted."""
    notices: tuple[str, ...] = ()
    """What was left out, and why, for a person to read."""


class Sources:
    """The sources for one workspace; mutable, as it keeps what last loaded."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings = settings
        self._workspace = workspace
        self._specs = tool_specs(workspace)
        self._modes: dict[str, tuple[Mode, ...]] = {}
        self._permissions: Rules | None = None
        self._project = ProjectFiles()
        self._default: str | None = None
        self._watch = Watch()
        self._notices: list[str] = []

    def load(self) -> LoadedFiles:
        """Read everything.

        Raises ``ConfigurationError`` where the default mode has never been among the
        modes, and ``ModeFileError`` for permissions that have never loaded: they may
        forbid something.
        """
        watch = Watch()
        self._notices = []
        user_rules = self._read_permissions()
        found = read_project(self._workspace)
        self._project = self._select_trusted(found)
        modes = list(self._read_modes())
        watch.keep((*self._own_paths(), *found.watched))
        self._watch = watch
        default = self._choose_default([mode.slug for mode in modes])
        catalog = layer_modes(modes, default, (*user_rules, *self._protect_own_files()))
        self._notices += _check_prompt_rules(self._project, catalog)
        notices = tuple(to_one_line(notice, 1000) for notice in self._notices)
        return LoadedFiles(catalog, self._project, notices)

    def have_changed(self) -> bool:
        """Whether a file may have changed since ``load``."""
        return self._watch.has_changed()

    def _own_paths(self) -> Iterator[Path]:
        built_in = self._settings.modes_folder
        own_prompts = filter(Path.is_dir, [prompts_of(built_in)])
        for folder in {built_in, *own_prompts, PROMPTS}:
            yield folder
            yield from (file for file in folder.iterdir() if file.suffix in (".yaml", ".md"))
        for name in (*GLOBAL_FILES, PERMISSIONS):
            yield self._settings.config_folder / name
        yield self._settings.trust_file

    def _protect_own_files(self) -> list[SourcedPermissions]:
        """Rules that deny edits of the agent's configuration and databases inside the workspace."""
        settings, root = self._settings, self._workspace.root
        files = (
            settings.config_folder,
            settings.trust_file,
            *settings.template,
            *settings.databases,
        )
        real = [file.resolve() for file in files]
        inside = [file.relative_to(root).as_posix() for file in real if file.is_relative_to(root)]
        # Where the workspace is such a folder itself, or contains a link to one, which a command
        # could turn, nothing in it is for the agent to edit.
        steps = (step for file in files for step in (file, *file.parents) if step.is_symlink())
        if any(step.parent.resolve().is_relative_to(root) for step in steps):
            inside.append(".")
        denied: dict[str, Kind] = {EVERY if name == "." else f"/{name}": "deny" for name in inside}
        edits = [spec.name for spec in self._specs if spec.effect.changes_files]
        return (
            [SourcedPermissions(dict.fromkeys(edits, denied), "the agent's own files")]
            if inside
            else []
        )

    def _choose_default(self, slugs: list[str]) -> str:
        wanted = self._settings.default_mode
        if wanted in slugs:
            self._default = wanted
            return wanted
        problem = f"DEFAULT_MODE {wanted!r} is unknown; the modes are: {', '.join(slugs)}"
        if self._default is None:
            raise ConfigurationError("; ".join([problem, *self._notices]))
        fallback = "ask" if "ask" in slugs else slugs[0]
        self._notices.append(f"{problem}; new threads start in {fallback!r}")
        return fallback

    def _read_permissions(self) -> list[SourcedPermissions]:
        file = self._settings.config_folder / PERMISSIONS
        try:
            text = read_user_file(file)
            rules = {} if text is None else parse_permissions(text, str(file))
            with _name_source(str(file)):
                check_permissions(rules, self._specs)
            self._permissions = rules
        except ModeFileError as error:
            if self._permissions is None:
                raise
            self._notices.append(f"{error}; the permissions as they were stay in effect")
        return [SourcedPermissions(self._permissions, str(file))] if self._permissions else []

    def _select_trusted(self, found: ProjectFiles) -> ProjectFiles:
        """The project's files to use: as found if trusted, else as last trusted, or none."""
        problems = [f"{name}: left out: {problem}" for name, problem in found.problems.items()]
        if not found or self._settings.trust_workspace:
            self._notices += problems
            return found
        root = self._workspace.root
        how = f"look at them, then: make trust WORKSPACE={root}"
        try:
            trusted = TrustFile(self._settings.trust_file).trusted(root)
        except ConfigurationError as error:
            self._notices.append(str(error))
            return ProjectFiles()
        if trusted is None:
            names = ", ".join(list(found.digests)[:10])
            self._notices.append(
                f"{root} has modes or rules of its own, which are ignored until you trust "
                f"them ({names}); {how}"
            )
            return ProjectFiles()
        changed = find_differences(trusted, found.digests)
        if not changed:
            self._notices += problems
            return found
        now = "what you trusted stays in effect" if self._project else "they are ignored"
        self._notices.append(
            f"modes or rules in {root} are not as you trusted them "
            f"({', '.join(changed[:10])}); {now} until you do again; {how}"
        )
        return self._project

    def _read_modes(self) -> Iterator[Mode]:
        """The modes of all files, lowest precedence first."""
        folder = self._settings.modes_folder
        for file in sorted(folder.glob("*.yaml")):
            name = f"{folder.name}/{file.name}"
            for mode in self._load_modes(Level.BUILT_IN, name, file, parse_mode):
                yield with_prompt(mode, folder)
        for name in GLOBAL_FILES:
            file = self._settings.config_folder / name
            yield from self._load_modes(Level.GLOBAL, str(file), file, parse_modes)
        for name, text in self._project.modes.items():
            yield from self._load_modes(Level.PROJECT, name, text, parse_modes)

    def _load_modes(
        self,
        level: Level,
        name: str,
        content: Path | str,
        parse: Callable[[str, str], ModesFile],
    ) -> tuple[Mode, ...]:
        key = f"{level}: {name}"
        try:
            text = read_user_file(content) if isinstance(content, Path) else content
            if text is None:
                self._modes.pop(key, None)
                return ()
            parsed = parse(text, name)
            modes = with_source(parsed, level, name)
            check_modes(modes, self._specs)
        except ModeFileError as error:
            before = self._modes.get(key, ())
            state = (
                "the modes it defined before stay in effect" if before else "the file is ignored"
            )
            rules = "" if before else ", and so is what it denies"
            self._notices.append(f"{error}; {state}{rules}")
            return before
        self._notices += parsed.warnings
        self._modes[key] = modes
        return modes


def check_modes(modes: Iterable[Mode], specs: Iterable[ToolSpec]) -> None:
    """Raise ``ModeFileError`` for unknown tool groups, and for invalid permissions."""
    specs = tuple(specs)
    for mode in modes:
        for grant in mode.groups:
            if grant.group not in GROUPS:
                raise ModeFileError(
                    f"{mode.file}: mode {mode.slug!r}: groups: unknown group "
                    f"{to_one_line(grant.group, 100)!r}; the groups are: {', '.join(GROUPS)} "
                    "(tools/__init__.py lists them)"
                )
        with _name_source(f"{mode.file}: mode {mode.slug!r}: permissions"):
            check_permissions(mode.permissions, specs)


@contextmanager
def _name_source(where: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error


def _check_prompt_rules(project: ProjectFiles, catalog: Catalog) -> Iterator[str]:
    for slug in project.slugs_with_rules:
        if slug not in catalog:
            yield f"rules for mode {slug!r} in the workspace, but there is no such mode"
    cut = [
        slug or "every mode"
        for slug in (None, *catalog)
        if project.count_rule_characters(slug) > MAX_RULES_CHARACTERS
    ]
    if cut:
        yield (
            f"the workspace has more than {MAX_RULES_CHARACTERS} characters of rules for "
            f"{', '.join(cut)}; the rest is left out"
        )
