"""``Sources``: where modes, rules, permissions and MCP servers come from, read again on a change.

Built-in (``modes/*.yaml`` of the clone) < global (the user's configuration folder) <
project (the workspace, if it is trusted). If a file does not load, its last version that did
stays in effect, if there is one; a notice says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from modeshift.configuration.databases import list_databases, list_template
from modeshift.configuration.edge_checks import check_edges, drop_unreached, list_asking
from modeshift.configuration.last_loaded import LastLoaded, read_user_file
from modeshift.configuration.mcp_file import FoundServer, read_servers
from modeshift.configuration.prices import PRICES
from modeshift.configuration.project_files import ProjectFiles, find_unread, read_project
from modeshift.configuration.prompt_rules import PromptRules, find_unused, read_user_rules
from modeshift.configuration.settings import Settings
from modeshift.configuration.trust_file import TrustFile, find_differences
from modeshift.modes.catalog import Catalog, layer_modes, prompts_of, with_prompt
from modeshift.modes.edges.edges import ANY
from modeshift.modes.effects import ToolSpec
from modeshift.modes.errors import ConfigurationError, ModeFileError
from modeshift.modes.facts import ProjectTests
from modeshift.modes.files import (
    NO_MODES,
    PROJECT,
    PROMPTS,
    ModesFile,
    find_denials,
    parse_mode,
    parse_modes,
    parse_permissions,
    parse_project,
)
from modeshift.modes.mode import Level, Mode, SourcedPermissions
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.matching import EVERY
from modeshift.modes.rules.permissions import Kind, Rules, check_permissions
from modeshift.project import find_root, load_project
from modeshift.prompts import get_folder
from modeshift.tools.servers import Server
from modeshift.tools.toolbox import tool_specs
from modeshift.tools.workspace.workspace import Workspace

GLOBAL_FILES = ("custom_modes.json", "custom_modes.yaml")
"""The user's modes files: the later one's modes replace the earlier one's."""


def read_modes(
    last: LastLoaded, settings: Settings, specs: Sequence[ToolSpec], project: Mapping[str, str]
) -> list[Mode]:
    """The modes, lowest precedence first.

    ``project`` has the texts of the workspace's trusted files by name, in that order, too.
    """
    folder, built_in, others = settings.modes_folder, dict[str, Mode](), list[Mode]()
    files_there = (file for file in folder.iterdir() if file.name not in NO_MODES)
    clones = sorted(file for file in files_there if file.suffix == ".yaml")
    own = [settings.config_folder / name for name in GLOBAL_FILES]
    last.watch(folder, *clones, *own)
    files: list[tuple[Level, str, Path | str]] = [
        *((Level.BUILT_IN, f"{folder.name}/{file.name}", file) for file in clones),
        *((Level.GLOBAL, str(file), file) for file in own),
        *((Level.PROJECT, name, text) for name, text in project.items()),
    ]
    for level, name, content in files:
        parsed = last.load(name, partial(_parse, level, name, content))
        if parsed is None:
            last.lost.append(_read_lost(content))
            continue
        last.notices += parsed.warnings
        read = check_modes_file(parsed, specs)
        modes = [last.load(f"{name} {slug}", partial(_take, entry)) for slug, entry in read.items()]
        if level is not Level.PROJECT:
            last.lost += [slug for slug, mode in zip(read, modes, strict=True) if mode is None]
        if level is Level.BUILT_IN:
            for mode in filter(None, modes):
                prompt = read_user_file(prompts_of(folder) / f"{mode.slug}.md")
                built_in[mode.slug] = with_prompt(mode, prompt)
            continue
        others += [mode for mode in modes if mode]
        for slug, words in parsed.prompts.items():
            if slug in built_in:
                given = {name: text for name, text in words if text.strip()}
                built_in[slug] = built_in[slug].model_copy(update=given)  # its rights stay
            else:
                why = f"there is no built-in mode {to_one_line(slug, 100)!r}"
                last.notices.append(f"{name}: {PROMPTS}: {why}")
    return [*built_in.values(), *others]


def _parse(level: Level, name: str, content: Path | str) -> ModesFile | None:
    text = read_user_file(content) if isinstance(content, Path) else content
    if text is None:
        return None
    is_clones = level is Level.BUILT_IN
    return parse_mode(text, name) if is_clones else parse_modes(text, name, level)


def _read_lost(content: Path | str) -> str:
    """The text of a user's file that is not used, which may name modes; empty if it has none."""
    try:
        return read_user_file(content) or "" if isinstance(content, Path) else ""
    except ModeFileError:
        return ANY


def list_lost_denials(
    last: LastLoaded, settings: Settings, modes: Iterable[Mode], specs: Sequence[ToolSpec]
) -> Iterator[tuple[str, SourcedPermissions]]:
    """By slug, what the user's files deny to modes of theirs that are not in ``modes``."""
    used = {(mode.file, mode.slug) for mode in modes}
    for name in (str(settings.config_folder / name) for name in GLOBAL_FILES):
        read = partial(lambda name: find_denials(_read_lost(Path(name)), name), name)
        denials = last.load(f"{name} denials", read, is_needed=True) or {}
        for slug, rules in denials.items():
            if (name, slug) not in used:
                tight = {tool: _widen(tool, patterns, specs) for tool, patterns in rules.items()}
                yield slug, SourcedPermissions(tight, name)


def _widen(
    tool: str, patterns: Mapping[str, Kind], specs: Sequence[ToolSpec]
) -> Mapping[str, Kind]:
    """The patterns that are denied; every call if one of them cannot be used."""
    try:
        check_permissions({tool: patterns}, specs)
    except ValueError:
        return {EVERY: "deny"}
    return patterns


def _take(entry: Mode | str) -> Mode:
    if isinstance(entry, str):
        raise ModeFileError(entry)
    return entry


def check_modes_file(parsed: ModesFile, specs: Sequence[ToolSpec]) -> dict[str, Mode | str]:
    """The modes of a file by slug, or why one cannot be used."""
    checked: dict[str, Mode | str] = {}
    for mode in parsed.modes:
        try:
            _check_mode(mode, specs)
            checked[mode.slug] = mode
        except ModeFileError as error:
            checked[mode.slug] = str(error)
    return {**checked, **parsed.refused}


def _check_mode(mode: Mode, specs: Sequence[ToolSpec]) -> None:
    for grant in mode.groups:
        groups = load_project().groups
        if grant.group not in groups:
            raise ModeFileError(
                f"{mode.file}: mode {mode.slug!r}: groups: unknown group "
                f"{to_one_line(grant.group, 100)!r}; the groups are: {', '.join(groups)} "
                "(tools/__init__.py lists them)"
            )
    check_rules(mode.permissions, specs, f"{mode.file}: mode {mode.slug!r}: permissions")


def check_rules(rules: Rules, specs: Sequence[ToolSpec], where: str) -> None:
    """Raise ``ModeFileError`` that says ``where`` the invalid permissions are."""
    try:
        check_permissions(rules, specs)
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error


MAX_NOTICES = 100
PERMISSIONS = "permissions.yaml"


@cache
def read_imported(file: Path) -> bytes:
    """A file of the clone's code at its first read: a process imports it only once."""
    return file.read_bytes()


@dataclass(frozen=True)
class LoadedFiles:
    """What was loaded, all sources merged."""

    catalog: Catalog
    project: ProjectFiles
    """The workspace's files that are trusted."""
    rules: PromptRules
    """The user's rules, then the project's."""
    servers: tuple[FoundServer, ...] = ()
    """All MCP servers that were found."""
    tests: ProjectTests | None = None
    """The owner's test command."""
    notices: tuple[str, ...] = ()
    """What was left out, and why, for a person to read."""


class Sources:
    """The sources for one workspace; mutable, as it keeps what last loaded."""

    def __init__(
        self, settings: Settings, workspace: Workspace, servers: tuple[Server, ...] = ()
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._servers = servers
        self._specs = tool_specs(workspace)
        self._has_workspace = any(spec.needs_workspace for spec in self._specs)
        self._project = ProjectFiles()
        self._last: LastLoaded | None = None

    def load(self) -> LoadedFiles:
        """Read everything. Starts no server. Blocks.

        Raises ``ConfigurationError`` where the default mode has never been among the
        modes, and ``ModeFileError`` for permissions that have never loaded: they may
        forbid something.
        """
        last, settings = LastLoaded(self._last), self._settings
        user_rules = self._read_permissions(last)
        project = read_project(self._workspace) if self._has_workspace else ProjectFiles()
        self._project = self._select_trusted(project, last.notices)
        modes = read_modes(last, settings, self._specs, self._project.modes)
        folders = settings.all_rules_folders
        rules = PromptRules((*read_user_rules(folders, last), *self._project.rules))
        prompts = (
            each for each in (prompts_of(settings.modes_folder), get_folder()) if each.is_dir()
        )
        for folder in prompts:
            last.watch(folder, *folder.glob("*.md"))
        root = find_root()
        found = (*root.glob("graph/*.py"), *root.glob("tools/*.py"))
        code = sorted(file for file in found if file.is_file())  # an editor's lock may be none
        last.watch(settings.trust_file, settings.config_folder / PRICES, *code, *project.watched)
        for file in (each for each in code if each.read_bytes() != read_imported(each)):
            last.notices.append(f"{file.parent.name}/{file.name} has changed: start this again")
        tests = self._read_tests(last)
        modes = check_edges(modes, last, load_project().facts, has_tests=tests is not None)
        default = self._choose_default(modes, last.notices)
        modes = drop_unreached(modes, default, last)
        lost = list_lost_denials(last, settings, modes, self._specs)
        catalog = layer_modes(modes, default, (*user_rules, *self._protect_own_files()), lost)
        last.notices += list_asking(catalog, self._specs)
        last.notices += [*rules.find_problems([*catalog]), *find_unused(self._project.texts)]
        if self._has_workspace:
            last.notices += find_unread(self._workspace, folders)
        servers = read_servers(last, settings, self._workspace, self._servers)
        notices = [to_one_line(notice, 1000) for notice in dict.fromkeys(last.notices)]
        if (more := len(notices) - MAX_NOTICES) > 0:
            notices = [*notices[:MAX_NOTICES], f"and {more} more notices"]
        self._last = last
        return LoadedFiles(catalog, self._project, rules, servers, tests, tuple(notices))

    def have_changed(self) -> bool:
        """Whether a file may have changed since ``load``."""
        return self._last is None or self._last.has_changed()

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
        # If the workspace is such a folder itself, or has a link to one, which a command could
        # change, the agent may edit nothing in it.
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

    def _choose_default(self, modes: Sequence[Mode], notices: list[str]) -> str:
        slugs, setting = [mode.slug for mode in modes], self._settings.default_mode
        claims = [mode for mode in modes if mode.default and mode.level is Level.BUILT_IN]
        if len(claims) > 1:
            both = f"{claims[0].file} and {claims[1].file} both have 'default: true'"
            raise ConfigurationError(f"{both}; leave it in one of them")
        for mode in (mode for mode in modes if mode.default and mode not in claims):
            notices.append(f"{mode.file}: mode {mode.slug!r}: only the clone's set 'default'")
        own = claims[0].slug if claims else "ask"
        default, known = setting or own, f"the modes are: {', '.join(slugs)}"
        problem = f"DEFAULT_MODE {default!r} is unknown; {known}"
        if setting is None:
            problem = f"no mode is the default one; {known}; write 'default: true' into a file"
        elif default in slugs:
            why = "DEFAULT_MODE is set, and new threads start in that mode, whatever modes/ say"
            notices.append(f"{why}; write 'default: true' into its file instead")
        if default in slugs:
            return default
        if self._last is None:
            raise ConfigurationError("; ".join([problem, *notices]))
        fallback = own if own in slugs else slugs[0]
        notices.append(f"{problem}; new threads start in {fallback!r}")
        return fallback

    def _read_permissions(self, last: LastLoaded) -> list[SourcedPermissions]:
        file = self._settings.config_folder / PERMISSIONS
        last.watch(file)

        def read() -> Rules:
            rules = parse_permissions(read_user_file(file) or "", str(file))
            check_rules(rules, self._specs, str(file))
            return rules

        rules = last.load(str(file), read, is_needed=True)
        return [SourcedPermissions(rules, str(file))] if rules else []

    def _read_tests(self, last: LastLoaded) -> ProjectTests | None:
        file = self._settings.modes_folder / PROJECT
        last.watch(file)
        name = f"{file.parent.name}/{PROJECT}"
        return last.load(name, lambda: parse_project(read_user_file(file) or "", name))

    def _select_trusted(self, project: ProjectFiles, notices: list[str]) -> ProjectFiles:
        """The project's files to use: as found if trusted, else as last trusted, or none."""
        root = self._workspace.root
        how = f"look at them, then: make trust WORKSPACE={root}"
        if project and not self._settings.trust_workspace:
            try:
                trusted = TrustFile(self._settings.trust_file).trusted(root)
            except ConfigurationError as error:
                notices.append(str(error))
                return ProjectFiles()
            if trusted is None:
                names = ", ".join(list(project.digests)[:10])
                notices.append(
                    f"{root} has modes or rules of its own, which are ignored until you trust "
                    f"them ({names}); {how}"
                )
                return ProjectFiles()
            if changed := find_differences(trusted, project.digests):
                now = "what you trusted stays in effect" if self._project else "they are ignored"
                notices.append(
                    f"modes or rules in {root} are not as you trusted them "
                    f"({', '.join(changed[:10])}); {now} until you do again; {how}"
                )
                return self._project
        notices += [f"{name}: left out: {problem}" for name, problem in project.problems.items()]
        return project
