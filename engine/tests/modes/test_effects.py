"""The table of effects, and that nothing but its columns is asked about."""

import re
from typing import get_args

import acp.schema

from modeshift.modes.effects import EFFECTS, EffectName, ToolKind
from tests.harness.root import ENGINE

FOLDERS = ("modeshift", "template")
MAY_NAME_EFFECTS = {
    f"modeshift/{name}"
    for name in (
        "modes/effects.py",
        "tools/tool.py",
        "tools/server_tools.py",
        "testing/check.py",
    )
}
"""The table, and where tools declare theirs."""
ASKS = re.compile(
    r"\.effect (?:in|not in) |\beffect (?:is|==|!=) |\b(?:is|in|==|!=) \(?\w+\.effect\b(?!\.)"
    r"|\beffect\.name\b|\b(?:case|match) .*\beffect\b"
    r"|^from modeshift\.modes\.effects import "
    r"(?!(?:Effect|NO_EFFECT|Risk|ToolSpec|ServerTool|[, ])+$)",
    re.M,
)


def test_no_code_asks_which_effect_a_tool_has() -> None:
    for folder in FOLDERS:
        for file in (ENGINE / folder).rglob("*.py"):
            where = file.relative_to(ENGINE).as_posix()
            if where not in MAY_NAME_EFFECTS:
                questions = ASKS.findall(file.read_text(encoding="utf-8"))
                assert not questions, f"{where} asks {questions}: make a column of it in effects.py"


def test_such_a_question_is_found() -> None:
    for line in (
        "one.effect is EDIT",
        "effect == other",
        "EDIT in (spec.effect, 1)",
        "EDIT is spec.effect",
        "spec.effect.name",
        "from modeshift.modes.effects import EFFECTS",
        "match tool.effect:",
    ):
        assert ASKS.search(line), line


def test_every_effect_can_be_named() -> None:
    assert tuple(EFFECTS) == get_args(EffectName)


def test_editors_know_the_kinds() -> None:
    assert set(get_args(ToolKind)) <= set(get_args(acp.schema.ToolKind))
