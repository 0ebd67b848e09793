"""The catalog: which modes there are, and which one a new thread starts in."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from pydantic import ValidationError

from modes.errors import ModeFileError, UnknownModeError
from modes.mode import Mode

BUILT_IN = Path(__file__).parent


class Catalog:
    """Modes by slug, the default mode first; immutable. Iterates over the slugs."""

    def __init__(self, modes: Iterable[Mode], default: str) -> None:
        by_slug: dict[str, Mode] = {}
        for mode in modes:
            if mode.slug in by_slug:
                raise ModeFileError(f"two modes have the slug {mode.slug!r}; rename one of them")
            by_slug[mode.slug] = mode
        if default not in by_slug:
            raise UnknownModeError(default, by_slug)
        self.default = default
        self._modes: dict[str, Mode] = {default: by_slug.pop(default), **by_slug}

    def __getitem__(self, slug: str | None) -> Mode:
        """The mode with this slug; raises ``UnknownModeError``, also for None."""
        if slug not in self:
            raise UnknownModeError(slug, self._modes)
        return self._modes[str(slug)]

    def __contains__(self, slug: object) -> bool:
        return isinstance(slug, str) and slug in self._modes

    def __iter__(self) -> Iterator[str]:
        return iter(self._modes)

    def __len__(self) -> int:
        return len(self._modes)


def load_catalog(default: str = "ask", folder: Path = BUILT_IN) -> Catalog:
    """Read every ``*.yaml`` in ``folder``, one mode each.

    Raises ``ModeFileError`` for a file that is no mode, ``UnknownModeError`` when
    ``default`` is none of them.
    """
    return Catalog((_read(file) for file in sorted(folder.glob("*.yaml"))), default)


def _read(file: Path) -> Mode:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModeFileError(f"{file}: cannot be read as YAML: {error}") from error
    try:
        return Mode.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}"
            f" (got {problem['input']!r})"
            for problem in error.errors()
        )
        raise ModeFileError(f"{file}: {problems}") from error
