"""The scenarios in an editor, whose dialogs come one after another."""

from pathlib import Path
from typing import Any

import pytest

from tests.clients.editor.editor import Editor
from tests.clients.scenarios import Scenario, of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def find_option(words: str, options: list[Any]) -> str:
    offered: dict[str, str] = {option.option_id: option.name for option in options}
    what, _, more = words.partition(" ")
    match what:
        case "approve":
            return str(next(id for id in ("manual", "once") if id in offered))
        case "to":
            return f"to-{more}"
        case "answer":
            return str(next(id for id, name in offered.items() if name == f"Answer: {more}"))
    return what


@of("editor")
async def test_in_an_editor(scenario: Scenario, editor: Editor, workspace: Path) -> None:
    left = [*scenario.decides]

    async def answer(_: Any, options: list[Any]) -> str:
        return find_option(left.pop(0), options)

    editor.answer = answer
    talk = await editor.talk(workspace, scenario.begins_in)
    assert await talk.say(scenario.says) == "end_turn"
    assert talk.shown == await talk.stored() == (scenario.mode, scenario.approvals)
    assert scenario.tells in talk.said
    scenario.check_files(workspace)
