"""What tells a clone's tests what does not fit; ``make test T=...`` runs all that pytest would."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from modeshift.testing import Conversation, make_agent, recorded_answers
from tests.harness import prefork, selection
from tests.harness.root import ENGINE, TEMPLATE
from tests.harness.selection import IN_VAIN, find_files, list_tests, main
from tests.harness.server import LINKED
from tests.tables import rows

TESTS = """
import os
import socket

import pytest

from modeshift.modes.errors import ProviderError


async def test_good(recorded):
    talk = recorded("Hello to you.")
    await talk.say("Hello.")
    assert (await talk.messages())[-1].text == "Hello to you."


async def test_missing(recorded):
    recorded("hello")


async def test_unplayed(recorded):
    recorded("hello")


async def test_differs(recorded):
    with pytest.raises(ProviderError):
        await recorded("hello").say("Something else.")


@pytest.mark.parametrize("name", ["missing", "changed", "same"])
def test_snapshot(snapshot, name):
    snapshot(f"{name}.txt", {"heading": "text"})


def test_nobody_is_reached():
    assert "OPENAI_API_KEY" not in os.environ
    with pytest.raises(AssertionError, match="a test wants to know where"):
        socket.create_connection(("api.example.org", 443))
"""


SKIPPING = """
import pytest


@pytest.mark.parametrize("number", range(3))
def test_of_three(number):
    pytest.skip("no such program here")


@pytest.mark.skipif(True, reason="another system")
def test_of_one(): ...
"""


@pytest.mark.slow
def test_what_was_skipped_is_counted_at_the_end(tmp_path: Path) -> None:
    """By what is missing."""
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    command = ("pytest", "-c", "pyproject.toml", str(tmp_path))
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    done = prefork.run(*command, cwd=ENGINE, env=env)
    assert done.returncode == 0
    *_, first, second, last = done.stdout.splitlines()
    assert (first, second) == ("3 skipped: no such program here", "1 skipped: another system")
    assert " 4 skipped " in last
    env["CI"] = "1"
    assert prefork.run(*command, cwd=ENGINE, env=env).returncode == 1
    assert prefork.run(*command, "-k", "of_one", cwd=ENGINE, env=env).returncode == 0


@pytest.mark.slow
def test_a_cassette_or_snapshot_that_does_not_fit_is_named(tmp_path: Path) -> None:
    for name in LINKED:
        (tmp_path / name).symlink_to(TEMPLATE / name)
    (tmp_path / "tests/snapshots").mkdir(parents=True)
    (tmp_path / "tests/test_samples.py").write_text(TESTS)
    (tmp_path / "tests/snapshots/changed.txt").write_text("==== heading\ntexts\n")
    (tmp_path / "tests/snapshots/same.txt").write_text("==== heading\ntext\n")
    cassettes = tmp_path / "cassettes/test_samples"
    options = ("-q", "-p", "no:cacheprovider", "-p", "modeshift.testing.plugin")
    env = {**os.environ, "PYTHONPATH": f"{ENGINE}:{tmp_path}", "OPENAI_API_KEY": "secret"}
    command = ("pytest", *options, "-o", "asyncio_mode=auto", "tests")
    done = prefork.run(*command, "-k", "good", "--record=scripted", cwd=tmp_path, env=env)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    for name in ("unplayed", "differs"):
        shutil.copy(cassettes / "test_good.yaml", cassettes / f"test_{name}.yaml")
    done = prefork.run(*command, cwd=tmp_path, env=env)
    for text in (
        "test_samples/test_missing.yaml is missing; record it: make record T=test_missing",
        "test_samples/test_unplayed.yaml: not played: 1 of 1",
        "test_samples/test_differs.yaml: request 1 of 1 is not as recorded:",
        "snapshots/missing.txt is missing; `make snapshots` writes it",
        "snapshots/changed.txt has changed; is it meant? `make snapshots`",
        "-texts\n+text\n",
        "3 failed, 5 passed",
        "2 errors",
    ):
        assert text in done.stdout, done.stdout + done.stderr


def test_each_snapshot_is_of_a_test() -> None:
    tests = "".join(file.read_text() for file in (ENGINE / "tests").rglob("test_*.py"))
    named = re.findall(r'snapshot\(f?"(.+?)", ', tests)
    known = [re.escape(re.sub(r"\{.+?\}", "PART", name)).replace("PART", ".+") for name in named]
    names = [file.name for file in (ENGINE / "tests/snapshots").iterdir()]
    assert [name for name in names if not re.fullmatch("|".join(known), name)] == []


ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [{"type": "text", "text": "Hello to you."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 4},
}


async def test_a_providers_client_gets_the_answers_of_a_test(tmp_path: Path) -> None:
    talk = Conversation(make_agent(tmp_path, "anthropic:claude-sonnet-5-5"))
    with recorded_answers(json.dumps(ANSWER).encode()) as requests:
        await talk.say("Hello.")
    assert requests[0].url == "https://api.anthropic.com/v1/messages"
    assert (await talk.messages())[-1].text == "Hello to you."


ALL = len(list(list_tests()))
HERE = Path(__file__)
CASSETTES = selection.TESTS / "graph/replay/test_cassettes.py"
VERDICTS = selection.TESTS / "modes/test_verdict.py"


@rows(
    "pattern file at_most",
    ("test_nothing_secret_is", CASSETTES, 5),
    ("nothing_SECRET_is", CASSETTES, 5),
    ("test_nothing_secret_is[openai-whole]", CASSETTES, 5),
    ("test_nothing_secret_is and openai-streamed", CASSETTES, 5),
    ("test_nothing_secret_is and not whole", CASSETTES, 5),
    ("(test_nothing_secret_is or test_a_wrong_name) and not (a or b)", HERE, 5),
    ("replay/test_cassettes", CASSETTES, ALL // 2),
    ("test_row and not slow", VERDICTS, 5),
    ("whole-streamed", CASSETTES, ALL),
    ("not slow", CASSETTES, ALL),
)
def test_what_is_collected(pattern: str, file: Path, at_most: int) -> None:
    files = find_files(pattern)
    assert file in files
    assert len(files) <= at_most


def test_a_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = "test_nothing_secret_is"[:-1] + "_"
    assert main(wrong) == IN_VAIN
    said = capsys.readouterr().err
    assert said.startswith(f"No test matches T={wrong!r}: {wrong!r} stands in no file of tests")
    assert "test_nothing_secret_is" in said
