"""``read_modes``: the modes of all files; what does not load stays as it last was, if it was."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from modeshift.graph.configuration.user_files import LastLoaded, read_user_file
from modeshift.graph.settings import Settings
from modeshift.modes.catalog import reword, with_prompt, with_source
from modeshift.modes.errors import ModeFileError
from modeshift.modes.files.modes_file import PROMPTS, ModesFile, parse_mode, parse_modes
from modeshift.modes.mode import Level, Mode
from modeshift.modes.plain_text import to_one_line
from modeshift.modes.rules.permissions import Rules, check_permissions
from modeshift.modes.toolspec import ToolSpec
from modeshift.project import load_project

GLOBAL_FILES = ("custom_modes.json", "custom_modes.yaml")
"""The later one's modes replace the earlier one's."""


def read_modes(
    last: LastLoaded, settings: Settings, specs: Sequence[ToolSpec], project: Mapping[str, str]
) -> list[Mode]:
    """The modes, lowest precedence first.

    ``project`` has the texts of the workspace's trusted files by name, in that order, too.
    """
    folder, built_in, others = settings.modes_folder, dict[str, Mode](), list[Mode]()
    clones = sorted(file for file in folder.iterdir() if file.suffix == ".yaml")
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
            continue
        last.notices += parsed.warnings
        found = check_modes(parsed, level, name, specs)
        kept = [last.load(f"{name} {slug}", partial(_take, one)) for slug, one in found.items()]
        if level is Level.BUILT_IN:
            built_in |= {mode.slug: with_prompt(mode, folder) for mode in kept if mode}
            continue
        others += [mode for mode in kept if mode]
        for slug, prompt in parsed.prompts.items():
            if slug in built_in:
                built_in[slug] = reword(built_in[slug], prompt)
            else:
                why = f"there is no built-in mode {to_one_line(slug, 100)!r}"
                last.notices.append(f"{name}: {PROMPTS}: {why}")
    return [*built_in.values(), *others]


def _parse(level: Level, name: str, content: Path | str) -> ModesFile | None:
    text = read_user_file(content) if isinstance(content, Path) else content
    if text is None:
        return None
    return (parse_mode if level is Level.BUILT_IN else parse_modes)(text, name)


def _take(found: Mode | str) -> Mode:
    if isinstance(found, str):
        raise ModeFileError(found)
    return found


def check_modes(
    parsed: ModesFile, level: Level, name: str, specs: Sequence[ToolSpec]
) -> dict[str, Mode | str]:
    """The modes of a file by slug, or why one cannot be used."""
    found: dict[str, Mode | str] = {}
    for mode in with_source(parsed, level, name):
        try:
            _check_mode(mode, specs)
            found[mode.slug] = mode
        except ModeFileError as error:
            found[mode.slug] = str(error)
    return {**found, **parsed.refused}


def _check_mode(mode: Mode, specs: Sequence[ToolSpec]) -> None:
    """Raise ``ModeFileError`` for an unknown tool group, and for invalid permissions."""
    for grant in mode.groups:
        if grant.group not in load_project().groups:
            raise ModeFileError(
                f"{mode.file}: mode {mode.slug!r}: groups: unknown group "
                f"{to_one_line(grant.group, 100)!r}; the groups are: {', '.join(load_project().groups)} "
                "(tools/__init__.py lists them)"
            )
    check_rules(mode.permissions, specs, f"{mode.file}: mode {mode.slug!r}: permissions")


def check_rules(rules: Rules, specs: Sequence[ToolSpec], where: str) -> None:
    """Raise ``ModeFileError`` that says ``where`` the invalid permissions are."""
    try:
        check_permissions(rules, specs)
    except ValueError as error:
        raise ModeFileError(f"{where}: {error}") from error
