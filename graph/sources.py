"""``Sources``: where modes, rules and permissions come from, read again when they change.

Built-in (``modes/*.yaml`` of the clone) < global (the user's configuration folder) <
project (the workspace, if it is trusted). A file that does not load is as it was when
it last did, or not there; the notices say so.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graph.settings import Settings
from modes.catalog import BUILT_IN, Catalog, layered, with_origin
from modes.errors import ConfigurationError, ModeFileError
from modes.mode import Level, Mode, Origin, Standing
from modes.modes_file import ModesFile, parse_mode, parse_modes, parse_permissions
from modes.permissions import Rules, check_rules
from prompts import FOLDER as PROMPTS
from tools.project import ProjectFiles, read_project
from tools.toolbox import tool_specs
from tools.trust import TrustFile
from tools.workspace import Workspace

GLOBAL_FILES = ("custom_modes.json", "custom_modes.yaml")
"""The later one's modes replace the earlier one's."""
PERMISSIONS = "permissions.yaml"
MAX_BYTES = 1_000_000
# A file that changes in the same tick of the clock in which it was read looks unchanged.
TICK_NS = 50_000_000


@dataclass(frozen=True)
class Loaded:
    """What the sources hold."""

    catalog: Catalog
    rules: Mapping[str, str] = field(default_factory=dict)
    """The project's rules for each mode's prompt."""
    notices: tuple[str, ...] = ()
    """What was left out, and why, for a person to read."""


class Sources:
    """The sources of one process; remembers what last held."""

    def __init__(
        self, settings: Settings, workspace: Workspace, check_model: Callable[[str], object]
    ) -> None:
        """``check_model`` raises ``ConfigurationError`` for a model that cannot be had."""
        self._settings = settings
        self._workspace = workspace
        self._check_model = check_model
        self._specs = tool_specs(workspace)
        self._modes: dict[str, tuple[Mode, ...]] = {}
        self._permissions: Rules | None = None
        self._project = ProjectFiles()
        self._watched: tuple[Path, ...] = ()
        self._stamp: object = None

    def load(self) -> Loaded:
        """Read everything.

        Raises ``UnknownModeError`` where the default mode is not among the modes, and
        ``ModeFileError`` for permissions that never loaded: they may forbid something.
        """
        started = time.time_ns()
        notices: list[str] = []
        standing = self._standing(notices)
        self._read_project(notices)
        modes = list(self._all_modes(notices))
        self._watched = (*self._own_paths(), *self._watched)
        self._stamp = _stamp(self._watched, started)
        catalog = layered(modes, self._settings.default_mode, standing)
        notices += [
            f"rules for mode {slug!r} in the workspace, but there is no such mode"
            for slug in self._project.slugs_with_rules
            if slug not in catalog
        ]
        rules = {slug: self._project.rules(slug) for slug in catalog}
        return Loaded(catalog, rules, tuple(notices))

    def changed(self) -> bool:
        """Whether a file may have changed since ``load``."""
        return self._stamp != _stamp(self._watched, 0)

    def _own_paths(self) -> Iterator[Path]:
        for folder in (BUILT_IN, PROMPTS):
            yield folder
            yield from (file for file in folder.iterdir() if file.suffix in (".yaml", ".md"))
        for name in (*GLOBAL_FILES, PERMISSIONS):
            yield self._settings.config_folder / name
        yield self._settings.trust_file

    def _standing(self, notices: list[str]) -> tuple[Standing, ...]:
        file = self._settings.config_folder / PERMISSIONS
        try:
            text = _read(file)
            rules = {} if text is None else parse_permissions(text, str(file))
            with _in_place(str(file)):
                check_rules(rules, self._specs)
            self._permissions = rules
        except ModeFileError as error:
            if self._permissions is None:
                raise
            notices.append(f"{error}; the permissions from before hold")
        return (Standing(self._permissions, str(file)),) if self._permissions else ()

    def _read_project(self, notices: list[str]) -> None:
        """Take the project's files if they are trusted as they are now."""
        found = read_project(self._workspace)
        self._watched = found.watched
        if not found.texts and not found.problems:
            self._project = found
            return
        if not self._is_trusted(found, notices):
            return
        self._project = found
        notices += [f"left out: {problem}" for problem in found.problems]

    def _is_trusted(self, found: ProjectFiles, notices: list[str]) -> bool:
        if self._settings.trust_workspace:
            return True
        trust = TrustFile(self._settings.trust_file)
        root = self._workspace.root
        try:
            if trust.trusts(root, found.digest):
                return True
            was_trusted = trust.knows(root)
        except ConfigurationError as error:
            notices.append(str(error))
            return False
        names = ", ".join([*found.texts, *found.problems][:10])
        how = f"look at them, then: make trust WORKSPACE={root}"
        if was_trusted:
            now = "what you trusted holds" if self._project.texts else "they are ignored"
            notices.append(
                f"modes or rules in {root} have changed since you trusted them; {now} until "
                f"you do again ({names}); {how}"
            )
        else:
            notices.append(
                f"{root} has modes or rules of its own, which are ignored until you trust "
                f"them ({names}); {how}"
            )
        return False

    def _all_modes(self, notices: list[str]) -> Iterator[Mode]:
        """The modes of all files, the weaker first."""
        for file in sorted(BUILT_IN.glob("*.yaml")):
            origin = Origin(Level.BUILT_IN, f"{BUILT_IN.name}/{file.name}")
            yield from self._of(origin, file, parse_mode, notices)
        for name in GLOBAL_FILES:
            file = self._settings.config_folder / name
            yield from self._of(Origin(Level.GLOBAL, str(file)), file, parse_modes, notices)
        for name, text in self._project.modes.items():
            yield from self._of(Origin(Level.PROJECT, name), text, parse_modes, notices)

    def _of(
        self,
        origin: Origin,
        content: Path | str,
        parse: Callable[[str, str], ModesFile],
        notices: list[str],
    ) -> tuple[Mode, ...]:
        key = f"{origin.level}: {origin.file}"
        try:
            text = _read(content) if isinstance(content, Path) else content
            if text is None:
                self._modes.pop(key, None)
                return ()
            parsed = parse(text, origin.file)
            modes = tuple(with_origin(parsed, origin))
            self._check_modes(modes)
        except ModeFileError as error:
            before = self._modes.get(key, ())
            state = "its modes from before hold" if before else "the file is left out"
            notices.append(f"{error}; {state}")
            return before
        notices += parsed.warnings
        self._modes[key] = modes
        return modes

    def _check_modes(self, modes: Iterable[Mode]) -> None:
        for mode in modes:
            where = f"{mode.origin.file}: mode {mode.slug!r}"
            with _in_place(f"{where}: permissions"):
                check_rules(mode.permissions, self._specs)
            if mode.model is not None:
                with _in_place(f"{where}: model"):
                    self._check_model(mode.model)


@contextmanager
def _in_place(where: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error


def _read(file: Path) -> str | None:
    """The text of a file of the user's; None where there is none. Raises ``ModeFileError``."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error
    try:
        if not file.is_file():
            raise ModeFileError(f"{file}: is not a file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ModeFileError(f"{file}: is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModeFileError(f"{file}: cannot be read: {error}") from error


def _stamp(paths: Iterable[Path], started: int) -> list[object]:
    """What changes where a file does; never the same twice for one that has just changed.

    ``started`` is when reading began, in nanoseconds; 0 for a mere look.
    """
    return [_stamp_of(path, started) for path in paths]


def _stamp_of(path: Path, started: int) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    if started and found.st_ctime_ns > started - TICK_NS:
        return object()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
