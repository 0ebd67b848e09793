"""The modes of the engine's tests, so that a change of the clone's own modes breaks none."""

from pathlib import Path
from typing import Any

from modes.catalog import BUILT_IN, Catalog, with_prompt, with_source
from modes.files.modes_file import parse_mode
from modes.mode import Level, Mode

MODES = Path(__file__).parent / "template/modes"
"""Their prompts are in ``prompts`` beside it."""


def load_catalog(default: str = "ask", folder: Path = BUILT_IN) -> Catalog:
    """The built-in modes alone, without anything of the user's or of a workspace."""
    modes = list[Mode]()
    for file in sorted(folder.glob("*.yaml")):
        name = f"{folder.name}/{file.name}"
        modes += with_source(parse_mode(file.read_text(), name), Level.BUILT_IN, name)
    return Catalog((with_prompt(mode, folder) for mode in modes), default)


def load_test_catalog(default: str = "ask") -> Catalog:
    """ask, architect, code and debug, as the tests need them."""
    return load_catalog(default, MODES)


def load_with(slug: str, **changes: Any) -> Catalog:
    """The same, with another definition of one mode."""
    catalog = load_test_catalog()
    modes = [catalog[each].model_copy(update=changes if each == slug else {}) for each in catalog]
    return Catalog(modes, "ask")
