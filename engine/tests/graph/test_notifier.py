"""``NOTIFY``: a program or a webhook is told once that a thread waits, and holds nothing up."""

import asyncio
import hashlib
import hmac
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modeshift.agent import open_agent
from modeshift.configuration.notifying import build_notifier
from modeshift.modes.errors import ConfigurationError
from modeshift.thread import APPROVE
from modeshift.threads import notifier as module
from modeshift.threads.notifier import Notifier
from tests.harness.conversation import REJECT, Conversation, make_agent, until
from tests.harness.place import UserFolders
from tests.tables import rows

SIGNING = "a-secret-of-sixteen-characters"


def write_program(folder: Path, code: str = "") -> list[str]:
    """One that runs this code, or appends what it is told to the file ``out`` beside it."""
    program, out = folder / "program.py", folder / "out"
    told = f"import sys; open({str(out)!r}, 'a').write(sys.stdin.read() + '\\n')"
    program.write_text(code or told)
    return [sys.executable, str(program)]


@asynccontextmanager
async def hooked(status: str) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on loopback that answers so; its address, and what it was sent."""
    taken = list[bytes]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-l"))
        taken.append(head + await reader.readexactly(int(length.split(b":")[1])))
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/hook", taken


async def ask(workspace: Path, notifier: Notifier) -> Conversation:
    talk = Conversation(make_agent(workspace, notifier=notifier))
    await talk.say("write a.txt: the secret is 42", mode="code")
    assert await talk.waiting() != []
    return talk


async def test_a_program_is_told_once_and_without_content(workspace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    talk = await ask(workspace, Notifier(write_program(tmp_path)))
    await until(lambda: out.exists() and out.read_text().endswith("\n"))
    (told,) = map(json.loads, out.read_text().splitlines())
    question = await talk.thread.question()
    assert question is not None
    about = {"thread": talk.thread.id, "mode": "code", "kind": "write_file"}
    assert told == {**about, "question": question.value["question"]}
    await talk.send({"approvals": "manual"})  # the question is asked again, and is the same
    assert await talk.waiting() != []
    await talk.decide(APPROVE)
    await talk.say("write b.txt: b")
    await until(lambda: len(out.read_text().splitlines()) == 2)


async def test_a_webhook_is_signed_and_a_failed_one_logged(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with hooked("204 No Content") as (url, taken):
        await ask(workspace, Notifier(url=url, secret=SIGNING.encode(), has_content=True))
        await until(lambda: bool(taken))
        head, _, body = taken[0].partition(b"\r\n\r\n")
        signature = hmac.new(SIGNING.encode(), body, hashlib.sha256).hexdigest()
        assert f"x-modeshift-signature: {signature}".encode() in head
        content = json.loads(body)["content"]
        assert content.startswith("Write file a.txt\nCode mode wants to use write_file")
        assert url not in caplog.text  # it is often a secret
    async with hooked("302 Found") as (url, taken):
        talk = await ask(workspace, Notifier(url=url, secret=SIGNING.encode()))
        await until(lambda: "NOTIFY: HTTPStatusError" in caplog.text)
        assert len(taken) == 1
    await talk.decide(APPROVE)
    await talk.say("write b.txt: b")  # nobody listens there now
    await until(lambda: "NOTIFY: ConnectError" in caplog.text)
    assert SIGNING not in caplog.text


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "raise SystemExit(3)", None])
async def test_one_that_hangs_or_fails_holds_nothing_up(
    workspace: Path, tmp_path: Path, code: str | None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "SECONDS", 1)
    program = write_program(tmp_path, code) if code else [str(tmp_path / "gone")]
    talk = await ask(workspace, Notifier(program))
    await talk.decide(REJECT)
    assert await talk.waiting() == []
    await until(lambda: "NOTIFY: " in caplog.text)


async def test_a_copy_of_the_thread_is_told_and_no_more_than_so_many_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier(write_program(tmp_path))
    for thread in ("thread", "copy", "thread"):
        notifier.tell(thread, "code", {"question": "1"}, [])
    tasks: Any = notifier._tasks
    await asyncio.wait({*tasks})
    told = [json.loads(line)["thread"] for line in (tmp_path / "out").read_text().splitlines()]
    assert sorted(told) == ["copy", "thread"]
    notifier = Notifier([sys.executable, "-c", "import time; time.sleep(600)"])
    for number in range(module.MAX_AT_ONCE + 5):
        notifier.tell("thread", "code", {"question": str(number)}, [])
    tasks = notifier._tasks
    assert len(tasks) == module.MAX_AT_ONCE
    assert "a question is not told" in caplog.text
    for task in tasks:
        task.cancel()
    await asyncio.wait({*tasks})


async def test_the_settings_of_a_clone(place: UserFolders, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = place.settings(notify=" ".join(write_program(tmp_path)))
    async with open_agent(settings) as agents:
        await agents.thread().say("write a.txt: a", mode="code")
        await until(lambda: out.exists() and out.read_text().endswith("\n"))


@rows(
    "given problem",
    ({"notify": "http://example.com/x", "notify_secret": SIGNING}, "give an https address"),
    ({"notify": "ftp://localhost/x", "notify_secret": SIGNING}, "give an https address"),
    ({"notify": "https://example.com/x"}, "needs NOTIFY_SECRET, of 16 characters"),
    ({"notify": "https://example.com/x", "notify_secret": "short"}, "needs NOTIFY_SECRET"),
    ({"notify": "no-such-program --x"}, "there is no such program"),
    ({"notify": "' unbalanced"}, "No closing quotation"),
    ({"notify": " "}, "there is no such program"),
    ({"notify": "{workspace}/mine"}, "is in the workspace, where the agent may write"),
)
def test_what_cannot_be_told_fails(place: UserFolders, given: dict[str, str], problem: str) -> None:
    program = place.workspace / "mine"
    program.write_text("#!/bin/sh\n")
    os.chmod(program, 0o700)  # noqa: PTH101
    given["notify"] = given["notify"].replace("{workspace}", str(place.workspace))
    with pytest.raises(ConfigurationError, match=problem):
        build_notifier(place.settings(**given))
