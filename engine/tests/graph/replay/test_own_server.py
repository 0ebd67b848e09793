"""A conversation recorded of llama.cpp's server, whose words nobody here wrote."""

from pathlib import Path

from modeshift.testing import APPROVE, Recorded
from tests.graph.calls import asks

ADD = "def add(a, b):\n    return a - b\n"


async def test_a_switch_at_a_server_of_ones_own(recorded: Recorded, workspace: Path) -> None:
    """``make local-models`` has llama.cpp's server say these words."""
    (workspace / "add.py").write_text(ADD)
    mended = {"path": "add.py", "content": ADD.replace("a - b", "a + b")}
    to_code = {"mode_slug": "code", "reason": "add.py has to be changed."}
    talk = recorded([("switch_mode", to_code)], [("write_file", mended)], "add.py adds now.")
    await talk.say("add in add.py subtracts. Mend it.")
    assert await asks(talk) == ["switch_mode"]
    await talk.decide(APPROVE)
    assert await talk.approve_all() == ["write_file"]
    records = (await talk.values())["mode_changes"]
    changes = [(record["source"], record["target"], record["decided_by"]) for record in records]
    assert changes == [("ask", "code", "human")]
    assert "a + b" in (await talk.files())["add.py"]
    assert (await talk.messages())[-1].text == "add.py adds now."
