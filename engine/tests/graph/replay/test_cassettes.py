"""Cassettes: what fails with them, what is in them, and how they are made."""

import io
import json
import re
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
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
)
from tests.harness.recording import KEYS
from tests.harness.root import ENGINE
from tests.tables import rows

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception")
RECORD = "--record=scripted"
ALREADY_IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
SECRET = "hush-hush-0123456789"  # noqa: S105  # for tests

# Tests as a user would write them; what befalls their cassettes must not hang on ours.
SAMPLES = '''
import httpcore2
import pytest

from tests.provider.script import say
from tests.provider.server import serving


async def talk(talk, text="Hello."):
    await talk.say(text)
    assert (await talk.messages())[-1].text


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_long(recorded, workspace, is_streamed):
    (workspace / "a").write_text("a file")
    steps = [("list_files", {})], [("read_file", {"path": "a"})], "There is an a."
    await talk(recorded(*steps, is_streamed=is_streamed))


async def test_folder(recorded, workspace):
    text = f"Where is {workspace}, sk-or-v1-0123456789abcdef0123, SECRET?"
    await talk(recorded("It is there."), text)


async def test_long_script(recorded):
    await talk(recorded("Hello.", "Hello?"))


async def test_that_fails(recorded):
    await talk(recorded("Hello."))
    raise AssertionError


async def test_that_never_begins(recorded):
    pass


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_real(monkeypatch, recorded, is_streamed):
    """With a server in the place of the real service."""
    text = "I am real: " + "x" * 30 + " SECRET, sk-or-v1-0123456789abcdef0123"
    with serving([say(text)], key="sk-the-key-of-a-person-1") as server:
        handle = httpcore2.AsyncConnectionPool.handle_async_request

        async def redirected(self, request):
            request.url = httpcore2.URL(server.url + request.url.target.decode())
            return await handle(self, request)

        monkeypatch.setattr(httpcore2.AsyncConnectionPool, "handle_async_request", redirected)
        await talk(recorded("I am scripted.", is_streamed=is_streamed))
'''


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests, and with the cassettes of one."""
    folder = tmp_path_factory.mktemp("samples")
    (folder / "test_samples.py").write_text(SAMPLES.replace("SECRET", SECRET))
    code, said = run(folder, RECORD, only="test_long[")
    assert (code, len(list(folder.rglob("*.yaml")))) == (0, 2), said
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
        said = io.StringIO()
        sys.modules.pop("test_samples", None)  # there is one in each folder
        with redirect_stdout(said), redirect_stderr(said):
            code = pytest.main([*options, *arguments, "-W", ALREADY_IMPORTED])
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
def test_what_is_no_cassette_is_said(samples: Path, tmp_path: Path) -> None:
    cassette(tmp_path, "test_that_never_begins").write_text("a: 1\n- b")
    cassette(tmp_path, "test_folder").write_text("a: 1")
    code, text = run(samples, into=tmp_path, only="never or folder")
    assert code == 1
    assert "test_that_never_begins.yaml:2' is not a cassette" in text
    assert "test_folder.yaml' is not a cassette: KeyError" in text


@pytest.mark.slow
def test_recording_again_gives_the_same(samples: Path, tmp_path: Path) -> None:
    """The same bytes; and a broken file is written anew."""
    names = ["test_long-True", "test_long-False"]
    before = {name: cassette(samples, name).read_bytes() for name in names}
    cassette(tmp_path, names[0]).write_bytes(b"<<<<<<< HEAD\n" + before[names[0]])
    code, text = run(samples, RECORD, into=tmp_path, only="test_long[")
    assert code == 0, text
    assert {name: cassette(tmp_path, name).read_bytes() for name in names} == before
    assert len(list(tmp_path.rglob("*"))) == 3, "nothing else is left"


@pytest.mark.slow
def test_what_goes_wrong_while_recording_writes_nothing(samples: Path, tmp_path: Path) -> None:
    kept = cassette(tmp_path, "test_that_fails")
    kept.write_text("as it was")
    only = "long_script or fails or never_begins"
    code, text = run(samples, RECORD, into=tmp_path, only=only)
    assert (code, kept.read_text()) == (1, "as it was")
    assert "only the first 1 steps of the script were asked for" in text
    assert "never began its conversation" in text
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.slow
def test_nothing_secret_is_written(samples: Path, tmp_path: Path) -> None:
    """Not in a request, not in an answer of the real service, nor cut into pieces in a stream."""
    code, text = run(samples, RECORD, into=tmp_path, only="test_folder", MY_SECRET=SECRET)
    assert code == 0, text
    key = {"MY_SECRET": SECRET, "ANTHROPIC_API_KEY": "sk-the-key-of-a-person-1"}
    code, text = run(samples, "--record=real", into=tmp_path, only="test_real[", **key)
    assert code == 1
    assert "answer 1 holds a secret or the test's folder, cut over several events" in text
    written = {path.stem: path.read_text() for path in tmp_path.rglob("*.yaml")}
    assert written.keys() == {"test_folder", "test_real-False"}
    for text in written.values():
        assert not re.search(rf"{SECRET}|sk-|{tmp_path.parent}|a-person|x-api-key", text)
        assert "uri: https://api.anthropic.com/v1/messages" in text
    assert f"Where is /somewhere/workspace, {MASK}, {MASK}?" in written["test_folder"]
    assert f"I am real: {'x' * 30} {MASK}, {MASK}" in written["test_real-False"]
    _, (response,) = load_cassette(cassette(tmp_path, "test_real-False"))
    assert {name.lower() for name in response["headers"]} == {"content-type", "server"}
    # Played where the variable is another one.
    code, text = run(samples, into=tmp_path, only="test_real[False")
    assert code == 0, text


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
