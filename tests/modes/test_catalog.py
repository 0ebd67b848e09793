"""The catalog: the clone's files, the default mode, and errors that name the file."""

from pathlib import Path

import pytest

from modes.catalog import Catalog, load_catalog
from modes.errors import ModeFileError, UnknownModeError
from modes.mode import Mode
from tests.harness.modes import load_test_catalog


def test_the_default_mode_comes_first() -> None:
    assert next(iter(load_test_catalog())) == "ask"
    assert next(iter(load_test_catalog("debug"))) == "debug"
    with pytest.raises(UnknownModeError, match="'kode'; the modes are: "):
        load_test_catalog("kode")
    mode = Mode(slug="a", name="A", role_definition="x")
    with pytest.raises(ModeFileError, match="'a'"):
        Catalog([mode, mode], "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b": : :", "YAML"),
        (b"", "the file is empty"),
        (b"- a\n- b", "the mode"),
        (b"slug: x\nname: X\nroleDefinition: y\ngroups: ['']", "groups.0.group"),
        (b"slug: x\nname: X\nroleDefinition: y\nmood: good", "mood"),
        (b"slug: \xff", "cannot be read"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: bytes, expected: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(text)
    with pytest.raises(ModeFileError, match=f"{tmp_path.name}/bad.yaml: .*{expected}"):
        load_catalog(folder=tmp_path)
