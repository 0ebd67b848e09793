"""The cassettes themselves: what fails with them, what is in them, and how they are made."""

import io
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vcr.request import Request as HttpRequest

from graph.models.secrets import MASK, find_secrets
from graph.replay.cassette import (
    Header,
    Interaction,
    Recording,
    Request,
    Response,
    load_cassette,
)
from graph.settings import ROOT
from modes.errors import ConfigurationError
from tests.harness import record
from tests.harness.cassette_writer import SCRIPTED, dump_cassette, is_same
from tests.harness.recording import KEYS, MANNERS, MODELS, said_in
from tests.harness.scrubbing import keep_headers, scrub
from tests.harness.strict_player import StrictPlayer
from tests.provider.server import KEY

CASSETTES = ROOT / "cassettes"
FILES = sorted(path for path in CASSETTES.rglob("*") if path.is_file())
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception")
SECRET = "hush-hush-0123456789"  # noqa: S105  # for tests

# Tests as a user would write them; what befalls their cassettes must not hang on ours.
SAMPLES = '''
import httpcore2
import pytest

from tests.harness.conversation import Conversation, make_agent
from tests.provider.script import call, say
from tests.provider.server import serving
from tests.harness.recording import MODELS


async def talk(tape, workspace, text="Hello."):
    agent = make_agent(workspace, MODELS[tape.provider])
    talk = Conversation(agent, is_streamed=tape.is_streamed)
    await talk.say(text)
    assert (await talk.messages())[-1].text


async def test_short(begin, workspace):
    await talk(begin([say("Hello to you.")]), workspace)


async def test_long(begin, workspace):
    (workspace / "a").write_text("a file")
    steps = [call("list_files"), call("read_file", path="a"), say("There is an a.")]
    await talk(begin(steps), workspace)


async def test_folder(begin, workspace):
    text = f"Where is {workspace}, sk-or-v1-0123456789abcdef0123, SECRET?"
    await talk(begin([say("It is there.")]), workspace, text)


async def test_answer(begin, workspace):
    text = "x" * 30 + " SECRET, sk-or-v1-0123456789abcdef0123"
    await talk(begin([say(text)]), workspace)


async def test_short_script(begin, workspace):
    with pytest.raises(ValueError):
        await talk(begin([call("list_files")]), workspace)


async def test_long_script(begin, workspace):
    await talk(begin([say("Hello."), say("Hello?")]), workspace)


async def test_that_fails(begin, workspace):
    await talk(begin([say("Hello.")]), workspace)
    raise AssertionError


async def test_that_never_begins(begin):
    pass


async def test_odd(begin, workspace):
    await talk(begin([say("I am scripted.")], is_odd=True), workspace)


async def test_real(monkeypatch, begin, workspace):
    """With a server in the place of the real services."""
    with serving([say("I am real.")], key="sk-the-key-of-a-person-1") as server:
        handle = httpcore2.AsyncConnectionPool.handle_async_request

        async def redirected(self, request):
            request.url = httpcore2.URL(server.url + request.url.target.decode())
            return await handle(self, request)

        monkeypatch.setattr(httpcore2.AsyncConnectionPool, "handle_async_request", redirected)
        await talk(begin([say("I am scripted.")]), workspace)
'''


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests, and with cassettes of the two that pass."""
    folder = tmp_path_factory.mktemp("samples")
    (folder / "test_samples.py").write_text(SAMPLES.replace("SECRET", SECRET))
    code, said = run(folder, "--record", only="(test_short[ and openai) or test_long[")
    assert (code, "8 cassettes written" in said) == (0, True), said
    return folder


def run(
    folder: Path, *arguments: str, only: str, into: Path | None = None, **environment: str
) -> tuple[int, str]:
    """Run tests of ``folder`` in this process, with nonsense for the providers' variables."""
    nonsense = dict.fromkeys((*KEYS.values(), "OPENAI_BASE_URL", "OPENAI_ORG_ID"), "nonsense")
    # In a CI pytest says everything twice: in full, and in its summary.
    terminal = {"CI": "", "BUILD_NUMBER": ""}
    options = [*QUIET, "--capture=sys", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
    options += ["-k", only, "--cassettes", str(into or folder), str(folder / "test_samples.py")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**terminal, **nonsense, **environment}.items():
            patch.setenv(name, value)
        return run_pytest(*options, *arguments)


def run_pytest(*options: str) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = pytest.main([*options, "-W", record.ALREADY_IMPORTED])
    return code, said.getvalue()


def cassette(folder: Path, name: str) -> Path:
    (folder / "test_samples").mkdir(exist_ok=True)
    return folder / "test_samples" / f"{name}.yaml"


SENT: Any = {"model": "m", "messages": [{"role": "user", "content": "a\nb"}], "stream": True}


@pytest.mark.parametrize(
    ("method", "uri", "sent", "texts"),
    [
        ("POST", "https://a/v1", dict(reversed(SENT.items())), None),
        ("GET", "https://a/v1", SENT, ["method: recorded POST, got GET"]),
        ("POST", "https://a/v2", SENT, ["URL: recorded https://a/v1, got https://a/v2"]),
        ("POST", "https://a/v1", {**SENT, "stream": 1}, ["request 1 of 1 is", "-  true", "+  1"]),
        ("POST", "https://a/v1", {**SENT, "messages": []}, ["| b", '"user"']),
        ("POST", "https://a/v1", {**SENT, "model": "x\n" * 400}, ["... and ", " more lines"]),
    ],
)
def test_what_a_request_may_not_differ_in(
    method: str, uri: str, sent: Any, texts: list[str] | None
) -> None:
    """To Python ``True`` and ``1`` are equal; only the order of keys plays no part."""
    one = Interaction(Request("POST", "https://a/v1", {}, SENT), Response(200, {}, "hello"))
    recording = Recording(Header(SCRIPTED, "openai:x", False, "2026-01-01"), (one,))
    request = HttpRequest(method, uri, json.dumps(sent), {})
    with StrictPlayer.use(recording=recording, path="a.yaml") as player:
        response = player.play_response(request)
        if texts is None:
            assert (response["body"]["string"], player.unplayed) == (b"hello", [])
            response = player.play_response(request)
            assert "one request more than the 1 that were recorded" in player.refused[0]
        else:
            assert player.unplayed == [0]
            for text in (*texts, "make record"):
                assert text in player.refused[0]
        assert response["status"]["code"] == 422
        assert player.refused[0].count("\n") < 130


def test_what_fails_a_test_and_says_why(samples: Path, tmp_path: Path) -> None:
    short, long = (
        load_cassette(cassette(samples, f"test_{one}-openai-whole")) for one in ("short", "long")
    )
    first = short.interactions[0]
    body = json.loads(json.dumps(first.request.body))
    body["input"][0]["content"] = "Another prompt. " + body["input"][0]["content"]
    reworded = replace(first, request=replace(first.request, body=body))
    streamed = load_cassette(cassette(samples, "test_long-openai-streamed"))
    for name, recording in {
        "test_short-openai-whole": replace(short, interactions=(reworded,)),
        "test_short-openai-streamed": short,
        "test_long-openai-whole": replace(long, interactions=long.interactions[::-1]),
        "test_long-openai-streamed": replace(streamed, interactions=streamed.interactions * 2),
    }.items():
        cassette(tmp_path, name).write_text(dump_cassette(recording, "changed"))
    cassette(tmp_path, "test_short-anthropic-whole").write_text("a: 1")
    cassette(tmp_path, "test_that_never_begins-openai-whole").write_text("a: 1")
    only = "test_short[ or (test_long[ and openai) or (never and openai and whole)"
    code, text = run(samples, into=tmp_path, only=only)
    assert code == 1
    for test, texts in {
        "test_short[openai-whole]": ["request 1 of 1 is not", "| Another prompt. You"],
        "test_short[openai-streamed]": ["AssertionError"],
        "test_short[anthropic-whole]": ["not a cassette of this project"],
        "test_short[anthropic-streamed]": ["is missing; record it: make record T=test_short"],
        "test_long[openai-whole]": ["request 1 of 3 is not as recorded"],
        "test_long[openai-streamed]": ["not played: 4, 5, 6 of 6"],
        "never_begins[openai-whole]": ["never began its conversation"],
    }.items():
        parts = [part for part in re.split(r"\n_{3,} ", text) if test in part.split("\n")[0]]
        said = "\n".join(parts)
        assert [one for one in texts if one not in said] == [], text
        assert not re.search("CannotOverwrite|Traceback|httpx", said)


def test_recording_again_gives_the_same(samples: Path, tmp_path: Path) -> None:
    """In each format; another day changes nothing, and a broken file is written anew."""
    names = [f"test_long-{name}-{manner}" for name in MODELS for manner in MANNERS]
    broken, *kept = names
    for name in names:
        recording = load_cassette(cassette(samples, name))
        old = replace(recording, recorded=replace(recording.recorded, date="2020-01-01"))
        cassette(tmp_path, name).write_text(dump_cassette(old, "of old"))
    file = cassette(tmp_path, broken)
    file.write_text("<<<<<<< HEAD\n" + file.read_text())
    code, text = run(samples, "--record", into=tmp_path, only="test_long[")
    assert (code, "1 cassettes written" in text) == (0, True), text
    assert all("2020-01-01" in cassette(tmp_path, name).read_text() for name in kept)
    assert is_same(load_cassette(file), load_cassette(cassette(samples, broken)))
    assert len(list(tmp_path.rglob("*"))) == 7, "nothing else is left"


def test_what_goes_wrong_while_recording_writes_nothing(samples: Path, tmp_path: Path) -> None:
    only = "(short_script or long_script or fails or never_begins) and openai and whole"
    kept = cassette(tmp_path, "test_that_fails-openai-whole")
    kept.write_text("as it was")
    code, text = run(samples, "--record", into=tmp_path, only=only)
    assert (code, kept.read_text()) == (1, "as it was")
    assert list(kept.parent.iterdir()) == [kept]
    assert "refused a request: the script is at its end" in text
    assert "only the first 1 steps of the script were asked for" in text
    assert "never began its conversation" in text
    code, text = run(samples, "--record", "-n", "2", only=only)
    assert (code, "--record is for one process" in text) == (4, True)


def test_nothing_secret_is_written(samples: Path, tmp_path: Path) -> None:
    """Not in a request, not in an answer, and not cut into pieces in a stream."""
    only = "(test_folder[ and whole) or test_answer["
    code, text = run(samples, "--record", into=tmp_path, only=only, MY_SECRET=SECRET)
    assert code == 1
    streams = "answer 1 holds a secret or the test's folder, cut over several events"
    assert text.count(streams) == 3, "the streamed answers of the three formats"
    written = {path.stem: path.read_text() for path in tmp_path.rglob("*.yaml")}
    assert len(written) == 6
    for text in written.values():
        assert SECRET not in text
        assert "sk-or" not in text
        assert str(tmp_path.parent) not in text
        assert KEY not in text
    assert f"Where is /somewhere/workspace, {MASK}, {MASK}?" in written["test_folder-openai-whole"]
    assert f" {MASK}, {MASK}" in written["test_answer-anthropic-whole"]
    # Played where the variable is another one, and the folder too.
    code, text = run(samples, into=tmp_path, only="test_answer[ and whole")
    assert code == 0, text


def test_the_real_service_is_recorded_as_that(samples: Path, tmp_path: Path) -> None:
    """Through the very address of the service; the key is the user's, and is not kept."""
    options = ("--record", "--real=openai", "--real=anthropic")
    keys = dict.fromkeys(KEYS.values(), "sk-the-key-of-a-person-1")
    only = "(test_real[ and not chat) or (test_odd[ and openai and whole)"
    code, text = run(samples, *options, into=tmp_path, only=only, HTTPS_PROXY="", **keys)
    assert code == 0, text
    for path in tmp_path.rglob("*.yaml"):
        recording = load_cassette(path)
        host = "api.openai.com" if "openai" in path.stem else "api.anthropic.com"
        is_odd = "test_odd" in path.stem
        assert recording.recorded.source == (SCRIPTED if is_odd else host)
        assert recording.interactions[0].request.uri.startswith(f"https://{host}/v1/")
        said = json.dumps(recording.interactions[0].response.body) + "".join(
            said_in(recording.interactions[0].response.body)
        )
        assert ("I am scripted." if is_odd else "I am real.") in said
        assert "a-person" not in path.read_text()
    assert len(list(tmp_path.rglob("*.yaml"))) == 5


def test_none_is_orphaned() -> None:
    """A test without one fails by itself."""
    folders = {path.parent.name for path in FILES}
    modules = [str(file) for file in (ROOT / "tests").rglob("test_*.py") if file.stem in folders]
    code, said = run_pytest(*QUIET, "--collect-only", "-m", "cassette", *modules)
    assert code == 0, said
    tests = re.findall(r"^tests/(?:\w+/)*(\w+)\.py::(\w+)\[([\w-]+)\]$", said, re.M)
    expected = {CASSETTES / module / f"{test}-{which}.yaml" for module, test, which in tests}
    orphans = sorted(str(path.relative_to(ROOT)) for path in set(FILES) - expected)
    assert not orphans, f"cassettes of no test; delete them: {orphans}"


def test_nothing_in_them_identifies_anybody() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        found = re.search(
            rf"{KEY}|(?i:cookie|organi[sz]ation|authori[sz]ation:|x-api-key|cf-ray|x-request-id)|"
            r"\bsk-|\breq_|user-agent|x-stainless|/home/|/root|/tmp/",
            text,
        )
        assert found is None, path
        recording = load_cassette(path)
        title = text.partition("\n")[0].removeprefix("# ")
        assert dump_cassette(recording, title) == text, path
        source = recording.recorded.source
        assert source == SCRIPTED or source.startswith("api."), path
        assert recording.recorded.model in MODELS.values(), path


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "api.openai.com"])
def test_no_test_reaches_further_than_this_machine(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        for attempt in (
            lambda: socket.create_connection((host, 443), timeout=1),
            lambda: tcp.connect((host, 443)),
            lambda: tcp.connect_ex((host, 443)),
            lambda: udp.connect((host, 443)),
            lambda: udp.sendto(b"", (host, 53)),
        ):
            with pytest.raises(AssertionError, match="a test wants to"):
                attempt()


def test_no_process_of_a_test_reaches_further() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 443), timeout=1)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "a test wants to" in done.stderr


def test_what_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in {
        "MY_API_KEY": "correct-horse-battery",
        "my_password": "in lower case",
        "AUTH_TOKEN": "ann:ann-has-this-one,bob:bob-has-this-one",
        "A_TOKEN": "short",
        "KEYBOARD": "no secret at all",
    }.items():
        monkeypatch.setenv(name, secret)
    value = [{"a": ["my correct-horse-battery", 1, None]}, "in lower case", "ann-has-this-one"]
    assert scrub(value, (), find_secrets()) == [{"a": [f"my {MASK}", 1, None]}, MASK, MASK]
    assert scrub("short, no secret at all", (), find_secrets()) == "short, no secret at all"
    assert scrub("my correct-horse-battery") == "my correct-horse-battery"
    assert scrub("/at/pytest-7/a.py", (("/at/pytest-7", "/somewhere"),)) == "/somewhere/a.py"
    headers: list[tuple[str, str | list[str]]]
    headers = [("Content-Type", ["a", "b"]), ("X-Api-Key", "secret"), ("Retry-After", "1")]
    assert keep_headers(headers) == {"content-type": "a, b", "retry-after": "1"}


SECRETS = """
    sk-0123456789abcdefghij sk-ant-api03-0123456789_abcdefghij org-0123456789abcdefghij
    proj_0123456789abcdefghij req_0123456789abcdefghij ghp_0123456789abcdefghij
    github_pat_0123456789abcdefghij hf_0123456789abcdefghij AKIA0123456789ABCDEF
    AIza0123456789abcdefghij0123456789abcde xoxb-0123456789
    eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
"""
NO_SECRETS = """
    src/user_repository_factory.py key-value-store-backend-2 pk_constraint_violation_x1
    req_of_a_person_whom_nobody_knows a-task-list-of-many-many-words call_0123456789abcdefghijklmn
    toolu_01A2b3C4d5E6f7G8h9 chatcmpl-0123456789abcdefghij
"""


def test_what_looks_like_a_secret() -> None:
    """Nothing else does, or different requests would be the same."""
    for text in (*SECRETS.split(), "Bearer abc.def.ghi", "Basic dXNlcjpwYXNzd29yZA=="):
        assert scrub(f"a {text}, b") == f"a {MASK}, b"
    for text in NO_SECRETS.split():
        assert scrub(text) == text


def test_the_file_holds_whatever_is_sent(tmp_path: Path) -> None:
    """Texts that YAML could read otherwise, bodies that are no JSON, things that come again."""
    long = "start " + "word " * 99
    odd = ["yes", "1", 1, 1.5, None, True, "", " x ", "a\n\nb\n", "tab\t\n", "é—\u2028\U0001f600"]
    sent = Request("POST", "https://a/b", {"content-type": "x"}, [odd, {"a": long}, long, [long]])
    answers = ("data: {}\n\ndata: [DONE]\n\n", {"a": [1]}, "", "no JSON", [1], "a: b # c")
    found = tuple(Interaction(sent, Response(200, {}, answer)) for answer in answers)
    recording = Recording(Header(SCRIPTED, "openai:x", True, "2026-01-01"), found)
    path = tmp_path / "a.yaml"
    text = dump_cassette(recording, "a title")
    path.write_text(text, encoding="utf-8")
    assert load_cassette(path) == recording
    assert text.count("start") == 1, "what comes again stands once"
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments == ["# a title", *[f"# {number} of 6" for number in range(1, 7)]]


BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "a: 1", "recorded: {}", "- 1", "a: &x [*x]", "a: !!python/name:os.system"),
        f"a0: &a0 [1]\n{BOMB}",
        f"recorded: {'[' * 100_000}",
        f"recorded: {'- ' * 100_000}1",
        "".join(f"{' ' * n}a:\n" for n in range(1100)),
    ],
    ids=range(11),
)
def test_what_is_no_cassette(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"a\.yaml' is not a cassette of this project"):
        load_cassette(path)
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_cassette(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("typed", "environment", "options", "texts"),
    [
        (
            None,
            {"T": "a_test"},
            "-k a_test",
            ["openai     the scripted", "anthropic  the scripted"],
        ),
        (None, {"OPENAI_API_KEY": KEY}, None, ["set YES=1, or SCRIPTED=1", "cost money"]),
        ("n", {"OPENAI_API_KEY": KEY}, None, ["openai     the REAL service", "Nothing recorded"]),
        ("y", {"OPENAI_API_KEY": KEY}, "--real=openai", ["anthropic  the scripted provider"]),
        (None, {"OPENAI_API_KEY": KEY, "SCRIPTED": "1"}, "", ["openai     the scripted"]),
        (None, {"OPENAI_API_KEY": KEY, "YES": "1"}, "--real=openai", ["openai     the REAL"]),
    ],
)
def test_nothing_is_spent_unasked(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str | None,
    environment: dict[str, str],
    options: str | None,
    texts: list[str],
) -> None:
    """How ``make record`` would run pytest; ``typed`` is typed at a terminal, if there is one."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if typed is not None:
            os.write(ours, f"{typed}\n".encode())
            monkeypatch.setattr("sys.stdin", terminal)
        found = record.options_for_pytest()
    os.close(ours)
    expected = None if options is None else f"-m cassette --record --verbose {options}".split()
    assert found == expected
    said = "".join(capsys.readouterr())
    assert [text for text in texts if text not in said] == []


def test_make_record_runs_pytest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A single file of tests, and none of its tests: what is run is not the point."""
    options = f"-p no:cacheprovider {ROOT}/tests/graph/replay/test_resume.py"
    for name, value in {"PYTEST_ADDOPTS": options, "T": "no_such_test", "SCRIPTED": "1"}.items():
        monkeypatch.setenv(name, value)
    assert record.main(tmp_path / "none.env") == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "matches T='no_such_test'" in capsys.readouterr().err
