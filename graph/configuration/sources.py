"""``Sources``: where modes, rules and permissions come from, read again when they change.

Built-in (``modes/*.yaml`` of the clone) < global (the user's configuration folder) <
project (the workspace, if it is trusted). If a file does not load, its last version that did
stays in effect, if there is one; a notice says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graph.configuration.mode_files import GLOBAL_FILES, ModeFiles, name_source
from graph.configuration.own_files import list_databases, list_template
from graph.configuration.project_files import ProjectFiles, read_project
from graph.configuration.prompt_rules import (
    PromptRules,
    list_user_files,
    read_user_rules,
)
from graph.configuration.trust import TrustFile, find_differences
from graph.configuration.unread_files import find_unread
from graph.configuration.user_files import read_user_file
from graph.configuration.watch import Watch
from graph.settings import Settings
from modes.catalog import Catalog, layer_modes, prompts_of
from modes.errors import ConfigurationError, ModeFileError
from modes.files.modes_file import parse_permissions
from modes.mode import SourcedPermissions
from modes.plain_text import to_one_line
from modes.rules.matching import EVERY
from modes.rules.permissions import Kind, Rules, check_permissions
from prompts import FOLDER as PROMPTS
from tools.calls.toolbox import tool_specs
from tools.workspace.workspace import Workspace

PERMISSIONS = "permissions.yaml"


@dataclass(frozen=True)
class LoadedFiles:
    """What was loaded, all sources merged."""

    catalog: Catalog
    project: ProjectFiles
    """The workspace's files that are trusted."""
    rules: PromptRules
    """The user's, then the project's."""
    notices: tuple[str, ...] = ()
    """What was left out, and why, for a person to read."""


class Sources:
    """The sources for one workspace; mutable, as it keeps what last loaded."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings = settings
        self._workspace = workspace
        self._specs = tool_specs(workspace)
        self._modes = ModeFiles(settings, self._specs)
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
        modes, notices = self._modes.read(self._project.modes)
        self._notices += notices
        folders = self._settings.all_rules_folders
        user_files = list_user_files(folders)
        rules = PromptRules((*read_user_rules(user_files, self._notices), *self._project.rules))
        watch.keep((*self._own_paths(), *folders, *user_files, *found.watched))
        self._watch = watch
        default = self._choose_default([mode.slug for mode in modes])
        catalog = layer_modes(modes, default, (*user_rules, *self._protect_own_files()))
        self._notices += [*rules.find_problems([*catalog]), *self._project.unused]
        self._notices += find_unread(self._workspace.root, folders)
        told = tuple(to_one_line(notice, 1000) for notice in self._notices)
        return LoadedFiles(catalog, self._project, rules, told)

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
            *list_template(settings),
            *list_databases(settings),
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
            with name_source(str(file)):
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
