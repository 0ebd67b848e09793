"""``/undo`` in an editor: shown first, done by what was shown, and by nothing else."""

from pathlib import Path

import pytest
from acp import RequestError

from tests.clients.editor.editor import Talk, choosing

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_message_goes_back_and_forth(code: Talk, workspace: Path) -> None:
    code.answer = choosing("auto", "allow", "always")
    await code.say("/approvals auto")
    await code.say("hello")
    await code.say("write a.txt: a")
    await code.say("/undo")
    assert "a.txt is deleted" in code.said
    digest = code.said.split()[-3]
    for wrong in ("0", "nonsense", f"back {digest}"):
        with pytest.raises(RequestError, match=r"another undo by now|no undo"):
            await code.say(f"/undo {wrong}")
    assert (workspace / "a.txt").exists()
    await code.say(f"/undo {digest}")
    assert not (workspace / "a.txt").exists()
    assert "/undo back goes back to before that" in code.said
    await code.say("/undo back")
    await code.say(f"/undo back {code.said.split()[-3]}")
    assert (workspace / "a.txt").read_text() == "a"
    await code.say("and on")
    assert code.shown == ("code", "auto")
