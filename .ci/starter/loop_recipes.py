"""What each recipe of docs/own/loop.md does; runs in a clone that has followed it."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from modeshift.modes.errors import InvalidInputError
from tests.harness.conversation import REJECT, Conversation, edit, restart, script

WRITE = ("write_file", {"path": "a.txt", "content": "written"})
READ = ("read_file", {"path": "a.txt"})
MISSING = ("edit_file", {"path": "b.txt", "edits": [{"old_text": "x", "new_text": "y"}]})
MAKEFILE = "test:\n\t@echo run >> runs.txt; echo 2 of 3 failed; exit 3\n"


def read(messages: list[BaseMessage]) -> str:
    """A request, as the model reads it."""
    return "\n".join(f"{message.type}: {message.text}" for message in messages)


def requests(talk: Conversation) -> list[str]:
    return [read(asked.messages) for asked in talk.model.asked]


async def check(workspace: Path) -> None:
    (workspace / "Makefile").write_text(MAKEFILE)
    talk = script(workspace, [READ], [MISSING], [WRITE], "done", [READ], "bye")
    await talk.say("go", mode="code", approvals="auto")
    told = [text.count("`make test` after your edit") for text in requests(talk)]
    assert told == [0, 0, 0, 1], told
    last = requests(talk)[-1]
    assert last.count("\n2 of 3 failed\n") == 1, last
    assert "[exit code 2]" in last, last  # make's own
    assert talk.nodes.count("check") == 3, talk.nodes
    await talk.say("and now read")
    assert [text.count("2 of 3 failed") for text in requests(talk)[4:]] == [1, 1], "it is kept"
    assert (workspace / "runs.txt").read_text() == "run\n", "once, and not after a read"


async def ticket(workspace: Path) -> None:
    talk = script(workspace, [READ], *["done"] * 5)

    async def say(**host: Any) -> list[int]:
        await talk.say("go", **host)
        last = requests(talk)[-1]
        return [last.count(f"# The ticket\n\n{text}\n") for text in ("AB-12", "AB-1")]

    assert await say() == [0, 0]
    assert await say(ticket="AB-12") == [1, 0]
    assert await say() == [1, 0], "once"
    assert await say(ticket="AB-1") == [1, 1]
    await talk.agent.aupdate_state(talk.config, {"ticket": "AB-12"})
    assert (await talk.values())["ticket"] == "AB-12"
    assert await say() == [2, 1], "again, for it has changed"
    for wrong in ({"ticket": 5}, {"tickets": "AB-1"}):
        try:
            await talk.say("go", **wrong)
        except InvalidInputError:
            continue
        raise AssertionError(wrong)


async def sign_off(workspace: Path) -> None:
    talk = script(workspace, "hello", [WRITE], "done", [WRITE], "really done", "bye")
    await talk.say("hello", mode="code", approvals="auto")
    assert await talk.waiting() == [], "nothing was written"
    await talk.say("write")
    (request,) = await talk.waiting()
    assert (request["name"], request["description"]) == ("sign_off", "Is this done?")
    for wrong in (edit("sign_off"), {"type": "approve", "remember": True}):
        try:
            await talk.decide(wrong)
        except InvalidInputError:
            assert await talk.waiting() == [request], "it stays open"
            continue
        raise AssertionError(wrong)
    model = talk.model
    restart(talk, workspace)  # as another process does
    await talk.decide({**REJECT, "message": "It has no title."})
    assert "human: It is not done yet. It has no title." in requests(talk)[3]
    assert len(model.asked) == 5, "the model went on, and wrote again"
    (again,) = await talk.waiting()
    assert again["id"] != request["id"], "another question"
    assert await talk.approve_all() == [], "no tool has asked"
    assert (await talk.values())["phase"] == "idle"
    assert len(model.asked) == 5
    await talk.say("what did you write?")
    assert len(await talk.waiting()) == 1
    await talk.say("never mind")
    assert len(await talk.waiting()) == 1, "a new message is answered, and then it is asked again"


RECIPES: dict[str, Callable[[Path], Coroutine[Any, Any, None]]] = {
    "check": check,
    "ticket": ticket,
    "sign_off": sign_off,
}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        folder = Path(sys.argv[1]) / name
        folder.mkdir()
        (folder / "a.txt").write_text("before")
        asyncio.run(RECIPES[name](folder))
        sys.stdout.write(f"{name} works\n")
