"""The table of effects, and that nothing but its columns is asked about."""

import ast
from collections.abc import Iterator
from typing import get_args

import acp.schema
import pytest

from graph.settings import ROOT
from modes.effects import EFFECTS, EffectName, ToolKind

FOLDERS = ("modes", "prompts", "tools", "graph", "doors")
MAY_NAME_EFFECTS = {"modes/effects.py", "tools/tool.py", "tools/mcp/binding.py"}
"""The table, and where tools declare theirs."""


def questions(tree: ast.AST) -> Iterator[str]:
    """What asks which effect a tool has: comparisons, cases, and the name of the effect."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                columns = {
                    id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)
                }
                for part in ast.walk(node):
                    if name_of(part) == "effect" and id(part) not in columns:
                        yield ast.unparse(node)
            case ast.Match() if "effect" in ast.unparse(node.subject).split("."):
                yield f"match {ast.unparse(node.subject)}"
            case ast.Attribute(attr="name") if name_of(node.value) == "effect":
                yield ast.unparse(node)
            case ast.ImportFrom(module="modes.effects"):
                names = {alias.name for alias in node.names} - {"Effect", "NO_EFFECT"}
                yield from sorted(names)


def name_of(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
        case _:
            return None


def test_no_code_asks_which_effect_a_tool_has() -> None:
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            found = list(questions(ast.parse(file.read_text(encoding="utf-8"))))
            where = str(file.relative_to(ROOT))
            if where not in MAY_NAME_EFFECTS:
                assert not found, f"{where} asks {found}: make a column of it in modes/effects.py"


@pytest.mark.parametrize(
    "line",
    [
        "one.effect is EDIT",
        "effect == other",
        "EDIT in (spec.effect, 1)",
        "spec.effect.name",
        "from modes.effects import EFFECTS",
        "match tool.effect:\n    case 1: pass",
    ],
)
def test_such_a_question_is_found(line: str) -> None:
    assert list(questions(ast.parse(line)))


def test_every_effect_can_be_named() -> None:
    assert tuple(EFFECTS) == get_args(EffectName)


def test_editors_know_the_kinds() -> None:
    assert set(get_args(ToolKind)) <= set(get_args(acp.schema.ToolKind))
