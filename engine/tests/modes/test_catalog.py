"""The catalog: the clone's files, the default mode, and errors that name the file."""

import pytest

from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import ModeFileError, UnknownModeError
from modeshift.modes.mode import Mode
from tests.harness.modes import load_catalog


def test_the_default_mode_comes_first() -> None:
    assert next(iter(load_catalog())) == "ask"
    assert next(iter(load_catalog("debug"))) == "debug"
    with pytest.raises(UnknownModeError, match="'kode'; the modes are: "):
        load_catalog("kode")
    mode = Mode(slug="a", name="A", role_definition="x", groups=())
    with pytest.raises(ModeFileError, match="'a'"):
        Catalog([mode, mode], "a")
