"""The modes of the engine's tests, so that a change of the clone's own modes breaks none."""

from pathlib import Path
from typing import Any

from modes.catalog import Catalog, load_catalog

MODES = Path(__file__).parent / "template/modes"
"""Their prompts are in ``prompts`` beside it."""


def load_test_catalog(default: str = "ask") -> Catalog:
    """ask, architect, code and debug, as the tests need them."""
    return load_catalog(default, MODES)


def load_with(slug: str, **changes: Any) -> Catalog:
    """The same, with another definition of one mode."""
    catalog = load_test_catalog()
    modes = [catalog[each].model_copy(update=changes if each == slug else {}) for each in catalog]
    return Catalog(modes, "ask")
