"""Each package names its public modules in ``__all__``; nobody else imports the others."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from graph.settings import ROOT

FOLDERS = ("modes", "tools", "graph", "doors")
ROOMS = [
    ".".join(file.parent.relative_to(ROOT).parts)
    for folder in FOLDERS
    for file in sorted((ROOT / folder).glob("*/__init__.py"))
]


def names_of(room: str) -> set[str]:
    return {file.stem for file in (ROOT / room.replace(".", "/")).glob("*.py")} - {"__init__"}


def imports_of(file: Path, room: str) -> Iterator[str]:
    """The modules of the room that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module == room:
                yield from (alias.name for alias in node.names)
            elif node.module.startswith(f"{room}."):
                yield node.module.removeprefix(f"{room}.")


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_not_public_is_imported_by_nobody_else(room: str) -> None:
    package = import_module(room)
    assert package.__doc__
    public = set(package.__all__)
    assert public <= names_of(room), f"{room}/__init__.py names modules that are not there"
    own = ROOT / room.replace(".", "/")
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            if not file.is_relative_to(own):
                behind = set(imports_of(file, room)) - public
                told = f"{file.relative_to(ROOT)} imports {behind}: name it in {room}.__all__"
                assert not behind, f"{told}, or use what is public"
