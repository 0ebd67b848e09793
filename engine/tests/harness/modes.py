"""The modes of the engine's tests, so that a change of the clone's own modes breaks none.

The owner's tests, those in ``tests`` of the clone, have the clone's modes and tools.
"""

import os
from pathlib import Path
from typing import Any

from modeshift.modes.catalog import Catalog, with_prompt, with_source
from modeshift.modes.files import parse_mode
from modeshift.modes.mode import Level, Mode
from tests.harness.root import ROOT

MODES = Path(__file__).parent / "template/modes"
"""Their prompts are in ``prompts`` beside it."""


def is_owners(file: Path) -> bool:
    """Whether a test is the owner's: in ``tests`` of the clone, not of the engine."""
    return file.is_relative_to(ROOT / "tests")


def has_engines_modes() -> bool:
    """Whether the test that runs, and what it starts, has the modes and tools of the engine's."""
    return os.environ.get("MODES_FOLDER") == str(MODES)


def load_catalog(default: str = "ask", folder: Path = ROOT / "modes") -> Catalog:
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
