"""The cassettes themselves: what fails with them, what is in them, and how they are made."""

import io
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from vcr import VCR
from vcr.filters import decode_response
from vcr.request import Request
from vcr.serialize import deserialize, serialize
from vcr.serializers import yamlserializer

from modeshift.models.provider_errors import MASK
from modeshift.testing.cassette_format import (
    Response,
    StrictReplay,
    configure,
    decode_body,
    join_stream,
)
from modeshift.testing.recording import name_cassette
from tests.harness import record
from tests.harness.recording import KEYS, MANNERS, MODELS
from tests.harness.root import ENGINE
from tests.harness.selection import list_tests
from tests.provider.server import KEY, SOURCE
from tests.tables import rows

CASSETTES = ENGINE / "tests/cassettes"
FILES = sorted(CASSETTES.rglob("*.yaml"))
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception")
RECORD = "--record-mode=all"
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
    code, said = run(folder, RECORD, only="(test_short[ and openai) or test_long[")
    assert (code, len(list(folder.rglob("*.yaml")))) == (0, 8), said
    return folder


def run(
    folder: Path, *arguments: str, only: str, into: Path | None = None, **environment: str
) -> tuple[int, str]:
    """Run tests of ``folder`` in this process, with nonsense for the providers' variables."""
    nonsense = dict.fromkeys((*KEYS.values(), "OPENAI_BASE_URL", "OPENAI_ORG_ID"), "nonsense")
    # In a CI pytest says everything twice: in full, and in its summary.
    terminal = {"CI": "", "BUILD_NUMBER": ""}
    options = [*QUIET, "--capture=sys", "-c", str(ENGINE / "pyproject.toml")]
    options += ["-k", only, "--cassettes", str(into or folder), str(folder / "test_samples.py")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**terminal, **nonsense, **environment}.items():
            patch.setenv(name, value)
        return run_pytest(*options, *arguments)


def run_pytest(*options: str, plugin: object = None) -> tuple[int, str]:
    said = io.StringIO()
    sys.modules.pop("test_samples", None)  # there is one in each folder
    with redirect_stdout(said), redirect_stderr(said):
        code = pytest.main([*options, "-W", record.ALREADY_IMPORTED], [plugin] if plugin else [])
    return code, said.getvalue()


def cassette(folder: Path, name: str) -> Path:
    (folder / "test_samples").mkdir(exist_ok=True)
    return folder / "test_samples" / f"{name}.yaml"


def load_cassette(path: Path) -> tuple[list[Request], list[Response]]:
    """The requests and their responses, not compressed any more."""
    requests, responses, *_ = deserialize(path.read_text("utf-8"), yamlserializer)
    return requests, [decode_response(one) for one in responses]


def dump_cassette(requests: list[Request], responses: list[Response]) -> str:
    vcr = VCR()
    configure(vcr)
    given = {"requests": requests, "responses": responses}
    return str(serialize(given, vcr.serializers["yaml"]))


def answer_with(body: str | bytes) -> dict[str, Any]:
    return {"status": {"code": 200, "message": ""}, "headers": {}, "body": {"string": body}}


SENT: Any = {"model": "m", "messages": [{"role": "user", "content": "a\nb"}], "stream": True}


@rows(
    "method uri sent texts",
    ("POST", "https://a/v1", dict(reversed(SENT.items())), None),
    ("GET", "https://a/v1", SENT, ["method: GET != POST"]),
    ("POST", "https://a/v2", SENT, ["uri: https://a/v2 != https://a/v1"]),
    ("POST", "https://a/v1", {**SENT, "stream": 1}, ["-stream: true", "+stream: 1"]),
    ("POST", "https://a/v1", {**SENT, "messages": []}, ["request 1 of 1 is not", "-    b"]),
    ("POST", "https://a/v1", {**SENT, "model": "x\n" * 400}, ["... and ", " more lines"]),
)
def test_what_a_request_may_not_differ_in(
    tmp_path: Path, method: str, uri: str, sent: Any, texts: list[str] | None
) -> None:
    """To Python ``True`` and ``1`` are equal; only the order of keys plays no part."""
    path = tmp_path / "a.yaml"
    recorded = Request("POST", "https://a/v1", json.dumps(SENT), {})
    path.write_text(dump_cassette([recorded], [answer_with("hello")]))
    vcr = VCR(record_mode="none", match_on=["method", "uri", "body"])
    configure(vcr)
    request = Request(method, uri, json.dumps(sent), {})
    with vcr.use_cassette(str(path)) as tape:
        replay = StrictReplay(tape)
        response = tape.play_response(request)
        if texts is None:
            assert (response["body"]["string"], replay.unplayed) == (b"hello", [])
            response = tape.play_response(request)
            assert "one request more than the 1 that were recorded" in replay.refused[0]
        else:
            assert replay.unplayed == [0]
            for text in (*texts, "make record"):
                assert text in replay.refused[0]
        assert response["status"]["code"] == 422
        assert replay.refused[0].count("\n") < 130


@pytest.mark.slow
def test_what_fails_a_test_and_says_why(samples: Path, tmp_path: Path) -> None:
    (request, *_), (response, *_) = load_cassette(cassette(samples, "test_short-openai-whole"))
    long = load_cassette(cassette(samples, "test_long-openai-whole"))
    streamed = load_cassette(cassette(samples, "test_long-openai-streamed"))
    whole = request.body_bytes
    request.body = whole.replace(b"You answer", b"Another prompt. You answer")
    for name, (requests, responses) in {
        "test_short-openai-whole": ([request], [response]),
        "test_short-openai-streamed": ([Request("POST", request.uri, whole, {})], [response]),
        "test_long-openai-whole": (long[0][::-1], long[1][::-1]),
        "test_long-openai-streamed": (streamed[0] * 2, streamed[1] * 2),
    }.items():
        cassette(tmp_path, name).write_text(dump_cassette(requests, responses))
    cassette(tmp_path, "test_that_never_begins-anthropic-whole").write_text("a: 1")
    cassette(tmp_path, "test_short-anthropic-whole").write_text("a: 1\n- b")
    cassette(tmp_path, "test_that_never_begins-openai-whole").write_text("interactions: []")
    only = "(test_short[ and not chat) or (test_long[ and openai) or (never and whole)"
    code, text = run(samples, into=tmp_path, only=only)
    assert code == 1
    for test, texts in {
        "test_short[openai-whole]": ["request 1 of 1 is not", "mode now. Another prompt. You"],
        "test_short[openai-streamed]": ["request 1 of 1 is not", "+stream: true"],
        "test_short[anthropic-whole]": ["test_short-anthropic-whole.yaml:2' is not a cassette"],
        "test_that_never_begins[anthropic-whole]": ["whole.yaml' is not a cassette: KeyError"],
        "test_short[anthropic-streamed]": ["is missing; record it: make record T=test_short"],
        "test_long[openai-whole]": ["request 1 of 3 is not as recorded"],
        "test_long[openai-streamed]": ["not played: 4, 5, 6 of 6"],
        "never_begins[openai-whole]": ["never began its conversation"],
    }.items():
        parts = [part for part in re.split(r"\n_{3,} ", text) if test in part.split("\n")[0]]
        said = "\n".join(parts)
        assert [block for block in texts if block not in said] == [], text
        assert not re.search("CannotOverwrite|Traceback|httpx", said)


@pytest.mark.slow
def test_recording_again_gives_the_same(samples: Path, tmp_path: Path) -> None:
    """In each format, the same bytes; and a broken file is written anew."""
    names = [f"test_long-{name}-{manner}" for name in MODELS for manner in MANNERS]
    before = {name: cassette(samples, name).read_bytes() for name in names}
    cassette(tmp_path, names[0]).write_bytes(b"<<<<<<< HEAD\n" + before[names[0]])
    cassette(tmp_path, names[1]).write_bytes(
        before[names[1]].replace(b"- request:", b"- {}\n- request:", 1)
    )
    cassette(tmp_path, names[2]).write_bytes(before[names[3]])
    code, text = run(samples, RECORD, into=tmp_path, only="test_long[")
    assert code == 0, text
    assert {name: cassette(tmp_path, name).read_bytes() for name in names} == before
    assert len(list(tmp_path.rglob("*"))) == 7, "nothing else is left"


@pytest.mark.slow
def test_what_goes_wrong_while_recording_writes_nothing(samples: Path, tmp_path: Path) -> None:
    only = "(short_script or long_script or fails or never_begins) and openai and whole"
    kept = cassette(tmp_path, "test_that_fails-openai-whole")
    kept.write_text("as it was")
    code, text = run(samples, RECORD, into=tmp_path, only=only)
    assert (code, kept.read_text()) == (1, "as it was")
    assert list(kept.parent.iterdir()) == [kept]
    assert "refused a request: the script is at its end" in text
    assert "only the first 1 steps of the script were asked for" in text
    assert "never began its conversation" in text


@pytest.mark.slow
def test_nothing_secret_is_written(samples: Path, tmp_path: Path) -> None:
    """Not in a request, not in an answer, and not cut into pieces in a stream."""
    only = "(test_folder[ and whole) or test_answer["
    code, text = run(samples, RECORD, into=tmp_path, only=only, MY_SECRET=SECRET)
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


@pytest.mark.slow
def test_the_real_service_is_recorded_as_that(samples: Path, tmp_path: Path) -> None:
    """Through the very address of the service; the key is the user's, and is not kept."""
    options = (RECORD, "--real=openai", "--real=anthropic")
    keys = dict.fromkeys(KEYS.values(), "sk-the-key-of-a-person-1")
    only = "(test_real[ and not chat) or (test_odd[ and openai and whole)"
    code, text = run(samples, *options, into=tmp_path, only=only, HTTPS_PROXY="", **keys)
    assert code == 0, text
    for path in tmp_path.rglob("*.yaml"):
        (request, *_), (response, *_) = load_cassette(path)
        host = "api.openai.com" if "openai" in path.stem else "api.anthropic.com"
        is_odd = "test_odd" in path.stem
        assert response["headers"]["server"] == [SOURCE], "of this test's server"
        assert request.uri.startswith(f"https://{host}/v1/")
        body = decode_body(response["body"]["string"])
        said = json.dumps(body) + "".join(join_stream(body))
        assert ("I am scripted." if is_odd else "I am real.") in said
        assert "a-person" not in path.read_text()
    assert len(list(tmp_path.rglob("*.yaml"))) == 5


class Collected:
    """The cassettes that tests have: those of conversations, and of plain vcrpy."""

    def __init__(self) -> None:
        self.cassettes = set[Path]()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            others = [name for mark in item.iter_markers("vcr") for name in mark.args]
            folder = CASSETTES / item.path.stem
            self.cassettes |= {folder / name for name in (f"{name_cassette(item)}.yaml", *others)}


@pytest.mark.slow
def test_none_is_orphaned() -> None:
    """A test without one fails by itself."""
    folders = {path.parent.name for path in FILES}
    modules = [str(file) for file in list_tests() if file.stem in folders]
    collected = Collected()
    code, said = run_pytest(*QUIET, "--collect-only", "-m", "vcr", *modules, plugin=collected)
    assert code == 0, said
    orphans = sorted(str(path.relative_to(ENGINE)) for path in set(FILES) - collected.cassettes)
    assert not orphans, f"cassettes of no test; delete them: {orphans}"


def test_nothing_in_them_identifies_anybody() -> None:
    """Of a service of the owner's only what is sent to say who one is."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        requests, responses = load_cassette(path)
        parts = [
            *(request.headers for request in requests),
            *(answer["headers"] for answer in responses),
        ]
        headers = {name.lower() for part in parts for name in part}
        assert not headers & {"authorization", "cookie", "set-cookie", "x-api-key"}, path
        if any(answer["headers"].get("server") != [SOURCE] for answer in responses):
            continue
        match = re.search(
            rf"{KEY}|(?i:cookie|organi[sz]ation|authori[sz]ation:|x-api-key|cf-ray|x-request-id)|"
            r"\bsk-|\breq_|user-agent|x-stainless|/home/|/root|/tmp/",
            text,
        )
        assert match is None, path
        assert dump_cassette(requests, responses) == text, path


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "api.openai.com"])
def test_no_test_reaches_further_than_this_machine(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        for attempt in (
            lambda: socket.create_connection((host, 443), timeout=1),
            *(lambda: tcp.connect((host, 443)), lambda: tcp.connect_ex((host, 443))),
            *(lambda: udp.connect((host, 443)), lambda: udp.sendto(b"", (host, 53))),
        ):
            with pytest.raises(AssertionError, match="a test wants to"):
                attempt()


def test_no_process_of_a_test_reaches_further() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 443), timeout=1)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "a test wants to" in done.stderr


def test_the_file_holds_whatever_is_sent(tmp_path: Path) -> None:
    """Texts that YAML could read otherwise, bodies that are no JSON, and bytes."""
    odd = ["yes", "1", 1, 1.5, None, True, "", " x ", "a\n\nb\n", "tab\t\n", "é—\u2028\U0001f600"]
    stream = b"data: {}\n\ndata: [DONE]\n\n"
    answers = [stream, b'{"a": [1]}', b"", b"no JSON", b"\xff\x00", b"a: b # c"]
    requests = [Request("POST", "https://a/b", json.dumps(odd), {})] * 6
    path = tmp_path / "a.yaml"
    path.write_text(dump_cassette(requests, [answer_with(answer) for answer in answers]), "utf-8")
    sent, read = load_cassette(path)
    assert [decode_body(message.body_bytes) for message in sent] == [odd] * 6
    bodies = [decode_body(response["body"]["string"]) for response in read]
    assert bodies == [decode_body(answer) for answer in answers]
    comments = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    assert comments == [f"# {number} of 6" for number in range(1, 7)]


KEYED = {"OPENAI_API_KEY": KEY}


def ask_to_record(
    record: ModuleType, patch: pytest.MonkeyPatch, typed: str | None, environment: dict[str, str]
) -> list[str] | None:
    """How ``make record`` would run pytest; ``typed`` is typed at a terminal, if there is one."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        for name, value in environment.items():
            patch.setenv(name, value)
        if typed is not None:
            os.write(ours, f"{typed}\n".encode())
            patch.setattr("sys.stdin", terminal)
        command: list[str] | None = record.options_for_pytest()
    os.close(ours)
    return command


@rows(
    "typed given options text",
    (None, {"T": "a_test"}, "-k a_test", "openai     the scripted"),
    (None, KEYED, None, "cost money, and nobody is here to ask: set YES=1, or SCRIPTED=1"),
    ("n", KEYED, None, "openai     the REAL service"),
    ("y", KEYED, "--real=openai", "anthropic  the scripted provider"),
    (None, {**KEYED, "SCRIPTED": "1"}, "", "openai     the scripted"),
    (None, {**KEYED, "YES": "1"}, "--real=openai", "openai     the REAL"),
)
def test_nothing_is_spent_unasked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    typed: str | None, given: dict[str, str], options: str | None, text: str,
) -> None:  # fmt: skip
    command = ask_to_record(record, monkeypatch, typed, given)
    marked = "-m vcr" if "T" in given else "-m conversation"
    known = None if options is None else f"{marked} {RECORD} --verbose {options}".split()
    assert command == known
    assert text in "".join(capsys.readouterr())
