"""The cassettes themselves: what fails with them, what is in them, and how they are made."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.cassette import (
    SCRIPTED,
    Header,
    Interaction,
    Recording,
    Request,
    Response,
    dumped,
    kept_headers,
    loaded,
    scrubbed,
)
from graph.secrets import MASK
from graph.settings import ROOT
from modes.errors import ConfigurationError
from tests.provider.server import KEY
from tests.recording import KEYS, MODELS

CASSETTES = ROOT / "cassettes"
FILES = sorted(CASSETTES.rglob("*"))
TEST = "tests/test_conversations.py"
PLAN = "test_plan_then_code-{}.yaml"


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run pytest in a process of its own, with nonsense for the providers' variables."""
    nonsense = dict.fromkeys((*KEYS.values(), "OPENAI_BASE_URL", "OPENAI_ORG_ID"), "nonsense")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        check=False,
        cwd=ROOT,
        env={**os.environ, **nonsense, "HTTPS_PROXY": "nonsense", **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


Change = Callable[[Recording], Recording]


def first(**changed: Any) -> Change:
    """Change the first interaction."""

    def change(recording: Recording) -> Recording:
        one, *others = recording.interactions
        one = replace(one, request=replace(one.request, **changed))
        return replace(recording, interactions=(one, *others))

    return change


def body(change: Callable[[Any], None]) -> Change:
    """Change the first request's body."""

    def changed(recording: Recording) -> Recording:
        request = json.loads(json.dumps(recording.interactions[0].request.body))
        change(request)
        return first(body=request)(recording)

    return changed


def reworded(request: Any) -> None:
    system = request["messages"][0]
    system["content"] = system["content"].replace("You change nothing", "You change everything")


def other_schema(request: Any) -> None:
    request["tools"][0]["function"]["parameters"]["properties"]["path"]["type"] = "integer"


def other_order(request: Any) -> None:
    request["messages"].reverse()


def same_order(request: Any) -> None:
    for key in sorted(request, reverse=True):
        request[key] = request.pop(key)


def kept(recording: Recording) -> Recording:
    return recording


def cut(recording: Recording) -> Recording:
    return replace(recording, interactions=recording.interactions[:-1])


def doubled(recording: Recording) -> Recording:
    return replace(recording, interactions=recording.interactions * 2)


CHANGES: dict[str, tuple[Change, list[str]]] = {
    # One test for each, so that one run of pytest tells it all.
    "test_an_answer_in_ask-openai-whole": (
        body(reworded),
        ["request 1 of 1", "-  ", "You change everything", "+  ", "You change nothing"],
    ),
    "test_an_answer_in_ask-openai-streamed": (
        body(other_schema),
        ['"integer"', '"string"', "make record"],
    ),
    "test_a_rejected_switch-openai-whole": (body(other_order), ["request 1 of 2", '"system"']),
    "test_a_rejected_switch-openai-streamed": (
        first(uri="https://api.openai.com/v2/chat/completions"),
        ["URL: recorded https://api.openai.com/v2/", "got https://api.openai.com/v1/"],
    ),
    "test_a_redirected_switch-openai-whole": (cut, ["one request more than the 2"]),
    "test_a_redirected_switch-openai-streamed": (doubled, ["not played: 4, 5, 6 of 6"]),
    "test_parallel_reads-openai-whole": (first(method="GET"), ["method: recorded GET, got POST"]),
    "test_parallel_reads-openai-streamed": (body(same_order), []),
    "test_parallel_reads-anthropic-whole": (kept, []),
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of changed cassettes."""
    folder = tmp_path_factory.mktemp("cassettes")
    (folder / "test_conversations").mkdir()
    for name, (change, _) in CHANGES.items():
        path = Path("test_conversations", f"{name}.yaml")
        (folder / path).write_text(dumped(change(loaded(CASSETTES / path)), "changed"))
    # One that is none, one that is missing.
    (folder / "test_conversations" / "test_a_hallucinated_tool-openai-whole.yaml").write_text(
        "a: 1"
    )
    tests = [*map(id_of, CHANGES), id_of("test_a_hallucinated_tool-openai-whole")]
    tests.append(id_of("test_a_hallucinated_tool-openai-streamed"))
    code, text = run("--cassettes", str(folder), *tests)
    assert code == 1
    return text


def id_of(name: str) -> str:
    test, provider, manner = name.split("-")
    return f"{TEST}::{test}[{provider}-{manner}]"


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_as_recorded_fails_and_says_what(outcome: str, name: str) -> None:
    texts = CHANGES[name][1]
    test = id_of(name).partition("::")[2]
    sections = [part for part in re.split(r"\n_{3,} ", outcome) if test in part.split("\n")[0]]
    assert bool(sections) is bool(texts)
    for text in texts:
        assert text in sections[0]
    for noise in ("CannotOverwrite", "Traceback", "httpx"):
        assert not any(noise in section for section in sections)


def test_a_missing_cassette_and_one_that_is_none_fail(outcome: str) -> None:
    assert "is missing; record it: make record T=test_a_hallucinated_tool" in outcome
    assert "is no cassette of this project: recorded: " in outcome


def test_none_is_orphaned() -> None:
    """Each cassette is that of a test; a test without one fails by itself."""
    code, text = run("--collect-only", "-m", "cassette", "tests")
    assert code == 0, text
    tests = re.findall(r"^tests/(\w+)\.py::(\w+)\[([\w-]+)\]$", text, re.M)
    expected = {CASSETTES / module / f"{test}-{which}.yaml" for module, test, which in tests}
    assert {path for path in FILES if path.is_file()} == expected


@pytest.mark.parametrize("path", [path for path in FILES if path.is_file()], ids=lambda p: p.stem)
def test_nothing_in_it_identifies_anybody(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.search(
        rf"{KEY}|(?i:cookie|organi[sz]ation|authori[sz]ation:|x-api-key|cf-ray|x-request-id)|"
        r"\bsk-|\breq_|user-agent|x-stainless|/home/|/root|/tmp/",
        text,
    )
    assert found is None
    recording = loaded(path)
    assert dumped(recording, text.partition("\n")[0].removeprefix("# ")) == text
    assert recording.recorded.source == SCRIPTED or recording.recorded.source.startswith("api.")
    assert recording.recorded.model in MODELS.values()


def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    """Also the first time, and when the clock has moved on."""
    names = ["test_plan_then_code-anthropic-streamed", "test_parallel_reads-openai-whole"]
    tests = [id_of(name) for name in names]
    code, text = run("--record", "--cassettes", str(tmp_path), *tests)
    assert (code, "2 cassettes written" in text) == (0, True), text
    for name in names:
        path = Path("test_conversations", f"{name}.yaml")
        again, before = loaded(tmp_path / path), loaded(CASSETTES / path)
        assert again.is_same(before)
        old = replace(again, recorded=replace(again.recorded, date="2020-01-01"))
        (tmp_path / path).write_text(dumped(old, "of old"))
    code, text = run("--record", "--cassettes", str(tmp_path), *tests)
    assert (code, "0 cassettes written" in text) == (0, True), text
    assert all("2020-01-01" in path.read_text() for path in tmp_path.rglob("*.yaml"))


def test_a_failing_test_leaves_its_cassette_alone(tmp_path: Path) -> None:
    """A recording in which a command of the conversation cannot run."""
    name = "test_debug_finds_and_mends-openai-whole"
    path = tmp_path / "test_conversations" / f"{name}.yaml"
    path.parent.mkdir()
    shutil.copy(CASSETTES / "test_conversations" / path.name, path)
    before = path.read_bytes()
    code, _ = run("--record", "--cassettes", str(tmp_path), id_of(name), PATH="/nowhere")
    assert (code, path.read_bytes()) == (1, before)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "api.openai.com"])
def test_no_test_reaches_further_than_this_machine(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with pytest.raises(AssertionError, match="a test wants to"):
        socket.create_connection((host, 443), timeout=1)
    for kind, name in (
        (socket.SOCK_STREAM, "connect"),
        (socket.SOCK_STREAM, "connect_ex"),
        (socket.SOCK_DGRAM, "connect"),
    ):
        with (
            socket.socket(family, kind) as one,
            pytest.raises(AssertionError, match="a test wants to reach"),
        ):
            getattr(one, name)((host, 443))
    with (
        socket.socket(family, socket.SOCK_DGRAM) as one,
        pytest.raises(AssertionError, match="a test wants to reach"),
    ):
        one.sendto(b"", (host, 53))


def test_what_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    monkeypatch.setenv("A_TOKEN", "short")
    value = {
        "a": ["my correct-horse-battery", 1, None],
        "sk-0123456789abcdefghij": {"text": "sk-ant-api03-0123456789_abcdefghij, short"},
        "more": "org-0123456789abcdefghij req_0123456789abcdefgh Bearer abc.def.ghi",
        "where": "/at/pytest-7/workspace/a.py",
    }
    assert scrubbed(value, [("/at/pytest-7", "/somewhere")]) == {
        "a": [f"my {MASK}", 1, None],
        "sk-0123456789abcdefghij": {"text": f"{MASK}, short"},
        "more": f"{MASK} {MASK} {MASK}",
        "where": "/somewhere/workspace/a.py",
    }
    headers: list[tuple[str, str | list[str]]]
    headers = [("Content-Type", ["a", "b"]), ("X-Api-Key", "secret"), ("Set-Cookie", "x")]
    assert kept_headers(headers) == {"content-type": "a, b"}


def test_the_file_holds_whatever_is_sent(tmp_path: Path) -> None:
    """Texts that YAML could read otherwise, bodies that are no JSON, things that come again."""
    long = "start " + "word " * 99
    request = {
        "odd": [
            "yes",
            "1",
            1,
            1.5,
            None,
            True,
            "",
            " x ",
            "a\n\nb\n",
            "tab\t\n",
            "é—\u2028\U0001f600",
        ],
        "again": [{"text": long}, {"text": long}, long, [long, long]],
    }
    found = tuple(
        Interaction(
            Request("POST", "https://a/b", {"content-type": "x"}, request),
            Response(200, {}, answer),
        )
        for answer in ("data: {}\n\ndata: [DONE]\n\n", {"a": [1]}, "", "no JSON", [1], "a: b # c")
    )
    recording = Recording(Header(SCRIPTED, "openai:x", True, "2026-01-01"), found)
    path = tmp_path / "a.yaml"
    text = dumped(recording, "a title")
    path.write_text(text, encoding="utf-8")
    assert loaded(path) == recording
    assert text.count("start") == 1, "what comes again stands once"
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# a title",
        *[f"# {number} of 6" for number in range(1, 7)],
    ]


@pytest.mark.parametrize("text", ["", "[", "a: 1", "recorded: {}", "- 1"])
def test_what_is_no_cassette(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"a\.yaml' is no cassette of this project"):
        loaded(path)
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        loaded(tmp_path / "missing.yaml")


def record(answer: str | None = None, **environment: str) -> tuple[int, str]:
    """``make record``, of no test; ``answer`` is typed at a terminal."""
    clean = {name: value for name, value in os.environ.items() if name not in KEYS.values()}
    command = [sys.executable, "-m", "tests.record"]
    options: dict[str, Any] = {"cwd": ROOT, "env": {**clean, "T": "no_such_test", **environment}}
    if answer is None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        return done.returncode, done.stdout + done.stderr
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, text=True, **options
    ) as it:
        os.write(ours, f"{answer}\n".encode())
        assert it.stdout is not None
        text = it.stdout.read()
    os.close(ours)
    os.close(theirs)
    return it.returncode, text


NOTHING_RUN = 5
"""pytest's exit code where no test matches: it has come as far as running them."""


def test_nothing_is_spent_unasked() -> None:
    code, text = record()
    assert (code, text.count("the scripted provider")) == (NOTHING_RUN, 2)
    code, text = record(OPENAI_API_KEY=KEY)
    assert (code, "set YES=1, or SCRIPTED=1" in text) == (1, True)
    assert "openai     the REAL service, as openai:gpt-5.5 (OPENAI_API_KEY is set)" in text
    assert "anthropic  the scripted provider" in text
    assert "costs money" in text
    assert "collected" not in text
    code, text = record("n", OPENAI_API_KEY=KEY)
    assert (code, "Nothing recorded" in text) == (1, True)
    code, text = record("y", OPENAI_API_KEY=KEY)
    assert (code, "collected" in text) == (NOTHING_RUN, True)
    code, text = record(OPENAI_API_KEY=KEY, SCRIPTED="1")
    assert (code, "REAL" in text) == (NOTHING_RUN, False)
    code, text = record(OPENAI_API_KEY=KEY, YES="1")
    assert (code, "REAL" in text) == (NOTHING_RUN, True)
