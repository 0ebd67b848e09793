"""The modes of the template, which are those of the engine's tests."""

from pathlib import Path
from typing import Any

from modeshift.configuration.last_loaded import read_user_file
from modeshift.modes.catalog import Catalog, prompts_of, with_prompt
from modeshift.modes.files import parse_mode
from modeshift.modes.mode import Mode
from tests.harness.root import TEMPLATE

MODES = TEMPLATE / "modes"
"""Their prompts are in ``prompts`` beside it."""


def load_catalog(default: str = "ask", folder: Path = MODES) -> Catalog:
    """The built-in modes alone, without anything of the user's or of a workspace."""
    modes = list[Mode]()
    for file in sorted(folder.glob("*.yaml")):
        name = f"{folder.name}/{file.name}"
        modes += parse_mode(file.read_text(), name).modes
    texts = (read_user_file(prompts_of(folder) / f"{mode.slug}.md") for mode in modes)
    return Catalog(map(with_prompt, modes, texts), default)


def load_with(slug: str, **changes: Any) -> Catalog:
    """The same, with another definition of one mode."""
    catalog = load_catalog()
    modes = [catalog[each].model_copy(update=changes if each == slug else {}) for each in catalog]
    return Catalog(modes, "ask")


def with_orchestrator(**changes: Any) -> Catalog:
    """The same, and a mode that hands out sub-tasks and has no tools of its own."""
    modes = load_catalog()
    fields = {"slug": "orchestrator", "name": "Orchestrator", "groups": (), **changes}
    return Catalog([*modes.values(), modes["ask"].model_copy(update=fields)], "ask")
