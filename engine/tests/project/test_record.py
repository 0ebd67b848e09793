"""``make record`` of a clone: who is asked, what is spent, what is written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from modeshift.testing import record
from modeshift.testing.scripted import SOURCE
from modeshift.testing.steady import Steady
from tests.graph.replay.test_cassettes import cassette, run
from tests.harness.shop import serving_api
from tests.provider.script import say
from tests.provider.server import KEY, serving
from tests.tables import rows

SCRIPTED, REAL = "--record=scripted", "--record=real"
STREAM = b"data: %b\n\ndata: [DONE]\n\n"
OWN_TEST = """
async def test_own(recorded, workspace):
    talk = recorded("I am scripted.")
    await talk.say("Hello.")
    assert (await talk.messages())[-1].text
"""
SERVICE_TEST = """
import os

import httpx


async def test_service(recorded, workspace):
    shop = os.environ["SHOP"]
    talk = recorded("Hello.", services=[shop])
    await talk.say("Hello.")
    assert httpx.get(f"{shop}/orders/A-17", trust_env=False).is_success
"""


def test_what_a_service_of_ones_own_is_asked_is_in_no_cassette(tmp_path: Path) -> None:
    """It is asked when the conversation is recorded, and when it is played."""
    (tmp_path / "test_samples.py").write_text(SERVICE_TEST)
    with serving_api() as api:
        for options in ((SCRIPTED,), ()):
            code, text = run(tmp_path, *options, only="test_service", SHOP=api.url)
            assert code == 0, text
    assert len(api.asked) == 2
    assert "orders" not in cassette(tmp_path, "test_service").read_text()


@pytest.mark.slow
def test_a_server_of_ones_own_is_recorded_and_kept(tmp_path: Path) -> None:
    """Of the model there, with its key; the scripted provider does not write over it."""
    (tmp_path / "test_samples.py").write_text(OWN_TEST)
    key = "sk-the-key-of-a-person-1"
    with serving([say("I am yours.")], key=key) as server:
        address = f"{server.url}/v1"
        options = ("--server", address, "openai:mine")
        code, text = run(tmp_path, *options, only="test_own", OPENAI_API_KEY=key)
    assert code == 0, text
    path = cassette(tmp_path, "test_own")
    own = path.read_text()
    assert "I am yours." in own
    assert [part for part in (server.url, key) if part in own] == []
    assert ("http://127.0.0.1:8080/v1/chat/completions" in own, '"mine"' in own) == (True, True)
    assert run(tmp_path, only="test_own")[0] == 0
    path.write_text(own.replace(SOURCE, "uvicorn"))
    code, text = run(tmp_path, SCRIPTED, only="test_own")
    assert "1 skipped: recorded of uvicorn, and kept: for the scripted" in text
    assert "I am yours." in path.read_text()
    path.unlink()
    assert run(tmp_path, SCRIPTED, only="test_own")[0] == 0
    assert "api.anthropic.com" in path.read_text()


def test_an_answer_is_made_steady() -> None:
    """Two of another time and with other ids are alike; what the model says stays as it is."""

    def answer(letter: str, created: int) -> Any:
        call = {"id": f"call_{letter * 24}", "function": {"arguments": '{"id": "mine"}'}}
        message = {"content": "At 12:01, chatcmpl-1", "tool_calls": [call]}
        path = "/home/me/models/a.gguf"
        about = {"id": f"chatcmpl-{letter * 8}", "created": created, "model": path}
        return {**about, "timings": {"ms": created}, "choices": [{"message": message}]}

    first, second = (
        [Steady().make(form % json.dumps(answer(*how)).encode()) for form in (b"%b", STREAM)]
        for how in (("a", 1), ("b", 2))
    )
    assert first == second
    made = json.loads(first[0])
    call = made["choices"][0]["message"]["tool_calls"][0]
    assert (made["model"], made["created"], "timings" in made) == ("a.gguf", 0, False)
    assert (len(call["id"]), call["id"][:5]) == (29, "call_")
    assert call["function"] == {"arguments": '{"id": "mine"}'}
    assert made["choices"][0]["message"]["content"] == "At 12:01, chatcmpl-1"
    assert first[1].startswith(b'data: {"id": "chatcmpl-')
    assert first[1].endswith(b"}\n\ndata: [DONE]\n\n")
    steady = Steady()
    page = b"<html>\ndata: no JSON"
    assert steady.make(page) == page
    once, again = (json.loads(steady.make(b'{"id": "x%d"}' % n))["id"] for n in (1, 2))
    assert once != again != json.loads(steady.make(b'{"id": "x1"}'))["id"] == once


def ask_to_record(
    patch: pytest.MonkeyPatch, typed: str | None, environment: dict[str, str]
) -> list[str] | None:
    """How ``make record`` would run pytest; ``typed`` is typed at a terminal, if there is one."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        for name, value in environment.items():
            patch.setenv(name, value)
        if typed is not None:
            os.write(ours, f"{typed}\n".encode())
            patch.setattr("sys.stdin", terminal)
        command = record.options_for_pytest()
    os.close(ours)
    return command


KEYED = {"OPENAI_API_KEY": KEY}
NEAR, FAR = "http://localhost:1/v1", "https://gateway.example/api/v1"
OWN = {"OPENAI_BASE_URL": NEAR, "MODEL": "openai:a"}


@rows(
    "typed given options text",
    (None, {}, SCRIPTED, "anthropic: the scripted provider"),
    (None, KEYED, None, "cost money, and nobody is here to ask: set REAL=1, or SCRIPTED=1"),
    ("n", KEYED, None, "Go on? [y/N] Nothing recorded."),
    ("y", KEYED, REAL, "the REAL openai, as OPENAI_API_KEY is set"),
    (None, {**KEYED, "SCRIPTED": "1"}, SCRIPTED, "anthropic: the scripted"),
    (None, {**KEYED, "REAL": "1"}, REAL, "the REAL openai"),
    (None, OWN, f"{SCRIPTED} --server {NEAR} openai:a", f"YOUR server {NEAR}, as openai:a"),
    (None, {**OWN, **KEYED}, f"{SCRIPTED} --server {NEAR} openai:a", "YOUR server"),
    (None, {**OWN, "SCRIPTED": "1"}, SCRIPTED, "anthropic: the scripted"),
    (None, {**OWN, "MODEL": "offline", "REAL": "1"}, SCRIPTED, "anthropic: the scripted"),
    (None, {**OWN, "OPENAI_BASE_URL": FAR}, None, f"prompts to {FAR} and cost money"),
    ("y", {**OWN, "OPENAI_BASE_URL": FAR}, f"{SCRIPTED} --server {FAR} openai:a", "Go on?"),
)
def test_nothing_is_spent_unasked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    typed: str | None, given: dict[str, str], options: str | None, text: str,
) -> None:  # fmt: skip
    command = ask_to_record(monkeypatch, typed, given)
    first, _, rest = (options or "").partition(" ")
    assert command == (None if options is None else [first, "--verbose", *rest.split()])
    assert text in "".join(capsys.readouterr())
