"""``Catalog``: the modes by slug, and where a thread starts; ``layer_modes`` makes one."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from modeshift.modes.errors import ModeFileError, UnknownModeError
from modeshift.modes.mode import Level, Mode, SourcedPermissions


class Catalog(dict[str, Mode]):
    """Modes by slug, the default mode first; a catalog is never changed."""

    def __init__(self, modes: Iterable[Mode], default: str) -> None:
        by_slug: dict[str, Mode] = {}
        for mode in modes:
            if mode.slug in by_slug:
                raise ModeFileError(f"two modes have the slug {mode.slug!r}; rename one of them")
            by_slug[mode.slug] = mode
        if default not in by_slug:
            raise UnknownModeError(default, by_slug)
        self.default = default
        super().__init__({default: by_slug.pop(default), **by_slug})

    def __missing__(self, slug: object) -> Mode:
        raise UnknownModeError(slug, self)

    def get_name(self, slug: str) -> str:
        """The mode's name, or its slug where the mode no longer exists."""
        return self[slug].name if slug in self else slug


def layer_modes(
    modes: Iterable[Mode],
    default: str,
    user_rules: Iterable[SourcedPermissions] = (),
    lost: Iterable[tuple[str, SourcedPermissions]] = (),
) -> Catalog:
    """A catalog in which a later mode replaces an earlier one of the same slug completely.

    What the user denied stays denied: by ``user_rules``, which apply to every mode, and by every
    global mode of the slug, even one that was replaced. ``lost`` has the rules of global modes
    that cannot be used.
    """
    everywhere, listed = tuple(user_rules), list(modes)
    users = (mode for mode in listed if mode.level is Level.GLOBAL and mode.permissions)
    denials = defaultdict[str, list[SourcedPermissions]](list)
    for slug, rules in (*lost, *((mode.slug, mode.own_rules) for mode in users)):
        denials[slug].append(rules)
    effective = (
        mode.model_copy(update={"denials": (*everywhere, *denials[slug]), "defaults": everywhere})
        for slug, mode in {mode.slug: mode for mode in listed}.items()
    )
    return Catalog(effective, default)


def with_prompt(mode: Mode, text: str | None) -> Mode:
    """The mode with the text of its ``<slug>.md``, if there is one."""
    return mode if text is None else mode.model_copy(update={"how_to_work": text.strip()})


def prompts_of(folder: Path) -> Path:
    """The folder with the prompts of the built-in modes in ``folder``: ``prompts`` beside it."""
    return folder.parent / "prompts"
