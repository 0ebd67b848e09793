"""An edit that cannot be made is answered with its error, and nobody is asked about it."""

from dataclasses import replace
from typing import Any

import pytest

from modeshift.models.loading import Models
from tests.harness.conversation import APPROVE, Conversation, open_thread
from tests.harness.place import UserFolders, modes_file
from tests.harness.scripted import ScriptedModel, calling

Call = tuple[str, dict[str, Any]]


def edit(old: str, path: str = "a.txt") -> Call:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": "new"}]}


WRITE: Call = ("write_file", {"path": "a.txt", "content": "zzz"})
RUN: Call = ("execute_command", {"command": "touch b"})


async def ask(place: UserFolders, *calls: Call, mode: str = "code", **host: Any) -> Conversation:
    model = ScriptedModel(answers=[calling(*calls)])
    talk = open_thread(replace(place.loader().deps(), models=Models(model)))
    await talk.say("go", mode=mode, **host)
    return talk


@pytest.mark.parametrize(
    ("calls", "asked", "failed"),
    [
        ([edit("zzz")], [], [True]),
        ([edit("zzz"), edit("old")], [1], [True, False]),
        ([edit("old"), edit("zzz")], [0, 1], [False, True]),
        ([WRITE, edit("zzz")], [0, 1], [False, False]),
        ([RUN, edit("zzz")], [0, 1], [False, True]),
        ([edit("zzz", "gone.txt")], [], [True]),
        ([edit("zzz", ".env")], [0], [True]),
        ([edit("zzz", "link")], [0], [True]),
    ],
    ids=[
        "one",
        "beside one that fits",
        "behind one that fits",
        "behind its file",
        "behind a command",
        "no such file",
        "of a secret file, which the error would quote",
        "of a link to one",
    ],
)
async def test_who_is_asked(
    place: UserFolders, calls: list[Call], asked: list[int], failed: list[bool]
) -> None:
    for name in ("a.txt", ".env"):
        (place.workspace / name).write_text("old")
    (place.workspace / "link").symlink_to(".env")
    talk = await ask(place, *calls)
    waiting = [request["id"] for request in await talk.waiting()]
    assert waiting == [f"call_{n}" for n in asked]
    if waiting:
        await talk.decide(*[APPROVE] * len(waiting))
    results = (await talk.results()).values()
    assert [result.status == "error" for result in results] == failed


@pytest.mark.parametrize("host", [{"mode": "mine"}, {"limit": "mine"}, {}], ids=repr)
async def test_a_file_whose_reading_asks_is_not_quoted_unasked(
    place: UserFolders, host: dict[str, str]
) -> None:
    (place.workspace / "a.txt").write_text("old")
    rule = "    permissions: {read_file: {a.txt: ask}}\n"
    place.global_modes.write_text(modes_file("mine", groups="read, edit", rest=rule))
    talk = await ask(place, edit("zzz"), **host)
    assert [request["name"] for request in await talk.waiting()] == ["edit_file"] * len(host)
