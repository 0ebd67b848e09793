"""Modes as data: what loads, what is refused, and what the refusal says."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from modes.catalog import Catalog, load_catalog
from modes.errors import ModeFileError, UnknownModeError
from modes.mode import Mode
from tests.harness.modes import load_test_catalog

REVIEWER: dict[str, Any] = {
    "slug": "doc-writer",
    "name": "Doc writer",
    "roleDefinition": "You write documentation.",
    "whenToUse": "For docs.",
    "description": "Docs",
    "customInstructions": "Be brief.",
    "groups": ["read", ["edit", {"fileRegex": r"\.md$", "description": "Markdown"}], "command"],
}


def test_a_mode_in_the_shape_of_kilo_code() -> None:
    mode = Mode.model_validate(REVIEWER)
    assert mode.role_definition == "You write documentation."
    assert [grant.group for grant in mode.groups] == ["read", "edit", "command"]
    edit = mode.grant("edit")
    assert edit is not None
    assert (edit.file_regex, edit.description) == (r"\.md$", "Markdown")
    assert mode.grant("mcp") is None


def test_python_names_work_too() -> None:
    mode = Mode(slug="a", name="A", role_definition="x")
    assert mode.groups == ()
    with pytest.raises(ValidationError):
        mode.name = "B"  # type: ignore[misc]  # frozen is what is tested


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("slug", "a b", "'a b'"),
        ("slug", "a\n", r"'a\\n'"),
        ("slug", "ä", "'ä'"),
        ("slug", "", "slug"),
        ("name", "", "name"),
        ("name", " \t", "name"),
        ("roleDefinition", "\n", "roleDefinition"),
        ("groups", [""], "groups.0.group"),
        ("groups", ["read", "read"], "'read' is there twice"),
        ("groups", ["read", ["read", {}]], "'read' is there twice"),
        ("groups", [["edit", {"fileRegex": "("}]], "'\\('"),
        ("groups", [["edit", {"filePattern": "x"}]], "filePattern"),
        ("groups", [["read", {"fileRegex": "x"}]], "not 'read'"),
        ("groups", "read", "tuple"),
        ("tools", ["read_file"], "tools"),
    ],
)
def test_what_is_refused(field: str, value: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        Mode.model_validate({**REVIEWER, field: value})


def test_the_built_in_modes() -> None:
    catalog = load_test_catalog()
    assert next(iter(catalog)) == catalog.default == "ask"
    for slug, groups in {
        "ask": {"read", "mcp"},
        "architect": {"read", "edit", "mcp"},
        "code": {"read", "edit", "command", "mcp"},
        "debug": {"read", "edit", "command", "mcp"},
    }.items():
        assert {grant.group for grant in catalog[slug].groups} == groups


def test_the_default_mode_comes_first() -> None:
    assert next(iter(load_test_catalog("debug"))) == "debug"
    with pytest.raises(UnknownModeError, match="'kode'; the modes are: "):
        load_test_catalog("kode")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (": : :", "YAML"),
        ("", "the file is empty"),
        ("- a\n- b", "the mode"),
        ("slug: x\nname: X\nroleDefinition: y\ngroups: ['']", "groups.0.group"),
        ("slug: x\nname: X\nroleDefinition: y\nmood: good", "mood"),
        ("slug: x\nname: X", "roleDefinition"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ModeFileError) as caught:
        load_catalog(folder=tmp_path)
    assert f"{tmp_path.name}/bad.yaml: " in str(caught.value)
    assert expected in str(caught.value)


def test_a_slug_twice() -> None:
    mode = Mode(slug="a", name="A", role_definition="x")
    with pytest.raises(ModeFileError, match="'a'"):
        Catalog([mode, mode], "a")
