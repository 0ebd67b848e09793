"""``ModeFiles``: the modes of all files; what does not load stays as it last was, if it was."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graph.configuration.user_files import read_user_file
from graph.settings import Settings
from modes.catalog import reword, with_prompt, with_source
from modes.errors import ModeFileError
from modes.files.modes_file import MAX_WARNINGS, PROMPTS, ModesFile, parse_mode, parse_modes
from modes.mode import Level, Mode, ModePrompt
from modes.plain_text import to_one_line
from modes.rules.permissions import check_permissions
from modes.toolspec import ToolSpec
from tools import GROUPS

GLOBAL_FILES = ("custom_modes.json", "custom_modes.yaml")
"""The later one's modes replace the earlier one's."""


@dataclass(frozen=True)
class _Loaded:
    name: str
    modes: tuple[Mode, ...] = ()
    prompts: Mapping[str, ModePrompt] = field(default_factory=dict)


class ModeFiles:
    """Mutable: it keeps what last loaded."""

    def __init__(self, settings: Settings, specs: Iterable[ToolSpec]) -> None:
        self._settings = settings
        self._specs = tuple(specs)
        self._loaded: dict[str, _Loaded] = {}
        self._notices: list[str] = []

    def read(self, project: Mapping[str, str]) -> tuple[list[Mode], Sequence[str]]:
        """The modes, lowest precedence first, and notices of what was left out.

        ``project`` has the texts of the workspace's trusted files by name, in that order, too.
        """
        self._notices = []
        folder, built_in = self._settings.modes_folder, dict[str, Mode]()
        for file in sorted(folder.glob("*.yaml")):
            found = self._load(Level.BUILT_IN, f"{folder.name}/{file.name}", file, parse_mode)
            built_in |= {mode.slug: with_prompt(mode, folder) for mode in found.modes}
        own = [self._settings.config_folder / name for name in GLOBAL_FILES]
        files = [self._load(Level.GLOBAL, str(file), file, parse_modes) for file in own]
        files += [
            self._load(Level.PROJECT, name, text, parse_modes) for name, text in project.items()
        ]
        for found in files:
            for slug, prompt in found.prompts.items():
                if slug in built_in:
                    built_in[slug] = reword(built_in[slug], prompt)
                else:
                    why = f"there is no built-in mode {to_one_line(slug, 100)!r}"
                    self._notices.append(f"{found.name}: {PROMPTS}: {why}")
        modes = [*built_in.values(), *(mode for found in files for mode in found.modes)]
        return modes, self._notices

    def _load(
        self,
        level: Level,
        name: str,
        content: Path | str,
        parse: Callable[[str, str], ModesFile],
    ) -> _Loaded:
        key = f"{level}: {name}"
        before = self._loaded.get(key, _Loaded(name))
        try:
            text = read_user_file(content) if isinstance(content, Path) else content
            if text is None:
                self._loaded.pop(key, None)
                return _Loaded(name)
            parsed = parse(text, name)
        except ModeFileError as error:
            state = (
                "the modes it defined before stay in effect"
                if before.modes
                else "the file is ignored"
            )
            rules = "" if before.modes else ", and so is what it denies"
            self._notices.append(f"{error}; {state}{rules}")
            return before
        self._notices += parsed.warnings
        modes, refused = check_modes(parsed, level, name, self._specs)
        modes += self._keep(level, refused, before.modes)
        self._loaded[key] = _Loaded(name, tuple(modes), parsed.prompts)
        return self._loaded[key]

    def _keep(self, level: Level, refused: Mapping[str, str], before: Iterable[Mode]) -> list[Mode]:
        """Those of the modes that do not load now, as they were before."""
        kept = {mode.slug: mode for mode in before if mode.slug in refused}
        for slug, problem in list(refused.items())[:MAX_WARNINGS]:
            state = "stays in effect as it was" if slug in kept else "is left out"
            is_lost = slug not in kept and level is Level.GLOBAL
            rules = ", and so is what it denies" if is_lost else ""
            self._notices.append(f"{problem}; the mode {state}{rules}")
        if (more := len(refused) - MAX_WARNINGS) > 0:
            self._notices.append(f"{more} more modes of the file do not load")
        return [*kept.values()]


def check_modes(
    parsed: ModesFile, level: Level, name: str, specs: Iterable[ToolSpec]
) -> tuple[list[Mode], dict[str, str]]:
    """The modes of a file, and why others cannot be used, by slug."""
    specs, modes, refused = tuple(specs), list[Mode](), dict(parsed.refused)
    for mode in with_source(parsed, level, name):
        try:
            _check_mode(mode, specs)
            modes.append(mode)
        except ModeFileError as error:
            refused[mode.slug] = str(error)
    return modes, refused


def _check_mode(mode: Mode, specs: Sequence[ToolSpec]) -> None:
    """Raise ``ModeFileError`` for an unknown tool group, and for invalid permissions."""
    for grant in mode.groups:
        if grant.group not in GROUPS:
            raise ModeFileError(
                f"{mode.file}: mode {mode.slug!r}: groups: unknown group "
                f"{to_one_line(grant.group, 100)!r}; the groups are: {', '.join(GROUPS)} "
                "(tools/__init__.py lists them)"
            )
    with name_source(f"{mode.file}: mode {mode.slug!r}: permissions"):
        check_permissions(mode.permissions, specs)


@contextmanager
def name_source(where: str) -> Iterator[None]:
    """Makes a ``ValueError`` a ``ModeFileError`` that names where it was."""
    try:
        yield
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error
