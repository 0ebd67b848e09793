"""``PromptRules``: what the user and the project want the model to be told, in order."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from graph.configuration.user_files import read_user_file
from modes.errors import ModeFileError

MAX_CHARACTERS = 50_000
"""Of all rules for one mode, of those for every mode, and of those for a folder."""
MAX_USER_FILES = 200
_FOLDER = "rules"


class Rule(NamedTuple):
    """A text, and where it is from."""

    name: str
    text: str
    slug: str | None = None
    """The mode that it is for; None for every mode."""

    def render(self) -> str:
        """As Markdown."""
        return f"## {self.name}\n\n{self.text.strip()}"


class PromptRules:
    """Immutable."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = tuple(rules)

    def render(self, slug: str | None) -> str:
        """Those for one mode, or those for every mode, as Markdown; cut at ``MAX_CHARACTERS``."""
        return cut(self._join(slug))

    def find_problems(self, modes: Collection[str]) -> Iterator[str]:
        """A notice for rules that do not fit, and for those of a mode that is not among these."""
        for slug in sorted({rule.slug for rule in self._rules if rule.slug is not None}):
            if slug not in modes:
                yield f"rules or skills for mode {slug!r}, but there is no such mode"
        cut_ones = [
            slug or "every mode"
            for slug in (None, *modes)
            if cut(found := self._join(slug)) != found
        ]
        if cut_ones:
            yield (
                f"there are more than {MAX_CHARACTERS} characters of rules for "
                f"{', '.join(cut_ones)}; the rest is left out"
            )

    def _join(self, slug: str | None) -> str:
        return "\n\n".join(rule.render() for rule in self._rules if rule.slug == slug)


def cut(text: str) -> str:
    """The text, or as much of it as the model is told."""
    left_out = len(text) - MAX_CHARACTERS
    return (
        text if left_out <= 0 else f"{text[:MAX_CHARACTERS]}\n[{left_out} more characters left out]"
    )


def list_user_files(folders: Iterable[Path]) -> list[Path]:
    """The folders ``rules`` and ``rules-{slug}`` in these, and what is in them; links count."""
    found: list[Path] = []
    for folder in folders:
        for rules in sorted(folder.glob(f"{_FOLDER}*/")):
            if rules.name == _FOLDER or rules.name.startswith(f"{_FOLDER}-"):
                found.append(rules)
                found += sorted(file for file in rules.rglob("*") if not _is_hidden(file, rules))
    return found


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(name.startswith(".") for name in file.relative_to(folder).parts)


def read_user_rules(files: Iterable[Path], notices: list[str]) -> list[Rule]:
    """The user's own rules, in ``list_user_files``; adds to the notices what cannot be read."""
    texts = [file for file in files if not file.is_dir()]
    if len(texts) > MAX_USER_FILES:
        notices.append(f"more than {MAX_USER_FILES} files of rules of your own; all are left out")
        return []
    rules = []
    for file in texts:
        try:
            text = read_user_file(file) or ""
        except ModeFileError as error:
            notices.append(f"{error}; it is left out")
            continue
        folder = next(one for one in file.parents if one.name.startswith(_FOLDER))
        _, _, slug = folder.name.partition("-")
        rules.append(Rule(str(file), text, slug or None))
    return rules
