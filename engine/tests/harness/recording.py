"""Records and replays cassettes: a test calls ``begin`` or ``recorded`` to start a conversation.

vcrpy and pytest-recording do the work; such a test is marked with ``vcr``. What is
added: a conversation is recorded of the scripted provider, or of the real service of each
``--real``; a cassette is written only when its test has passed; a replay is strict.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from vcr.cassette import Cassette

from modeshift.models.provider_errors import find_secrets
from modeshift.testing.cassette_format import (
    Response,
    StrictReplay,
    WrittenInstead,
    decode_body,
    get_config,
    join_stream,
    scrub,
)
from modeshift.testing.recording import PASSED, name_cassette
from tests.harness.root import ENGINE
from tests.provider.script import Step
from tests.provider.server import KEY, ScriptedProvider, serving

MODELS = {
    "openai": "openai:gpt-5.6",
    "chat": "openai:qwen3",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
"""``chat`` is any server that speaks OpenAI's Chat Completions."""
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
LOCAL_SERVER = "http://127.0.0.1:8080/v1"
"""Where recordings have a server that speaks Chat Completions and is no service of its own."""
MANNERS = ("whole", "streamed")
TAPE = pytest.StashKey["Tape"]()


def shown(path: Path) -> str:
    """The path relative to the engine's folder, if it is inside."""
    return str(path.relative_to(ENGINE) if path.is_relative_to(ENGINE) else path)


def variables(provider: str, key: str) -> dict[str, str]:
    """The environment variables with which a model of the provider can be used."""
    if provider in KEYS:
        return {KEYS[provider]: key}
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": LOCAL_SERVER}


@pytest.fixture
def vcr_config(
    tmp_path: Path, record_mode: str, vcr_cassette_dir: str, default_cassette_name: str
) -> dict[str, Any]:
    path = Path(vcr_cassette_dir) / f"{default_cassette_name}.yaml"
    return get_config(((str(tmp_path), "/somewhere"),), record_mode, path)


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """``tests/cassettes/<test module>``."""
    own = ENGINE / "tests/cassettes"
    return str(Path(request.config.getoption("--cassettes") or own) / request.path.stem)


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    """The test's name with dashes for brackets, which a shell would expand."""
    return name_cassette(request.node)


def redirect(patch: pytest.MonkeyPatch, to: str | None) -> None:
    """Send the requests of the providers' clients to the server ``to``, unless it is None.

    The redirect happens below the client and vcrpy, so that both see the service's own address:
    ``ChatOpenAI`` sends other requests to other addresses. Connections are closed after each
    request, because LangChain's clients outlive a test's event loop.
    """
    pool = httpcore2.AsyncConnectionPool
    handle = pool.handle_async_request

    async def redirected(self: Any, request: httpcore2.Request) -> Any:
        names = [(name, value) for name, value in request.headers if name.lower() != b"connection"]
        request.headers = [*names, (b"connection", b"close")]
        if to is not None:
            target = request.url.target.decode()
            request.url = httpcore2.URL(to + target)
        return await handle(self, request)

    patch.setattr(pool, "handle_async_request", redirected)


@dataclass
class Tape:
    """The cassette of a running test, recorded or played."""

    provider: str
    is_streamed: bool
    cassette: Cassette
    replaced: WrittenInstead
    replay: StrictReplay | None = None
    url: str | None = None
    """Of the scripted provider."""

    def hand_over(self) -> int:
        """Leave the rest to another process; gives the number of interactions before it."""
        assert self.replay is not None
        left = self.replay.unplayed
        self.cassette.play_counts.update(left)
        return len(self.cassette) - len(left)


class _Steps(Sequence[Any]):
    """A script of which the first steps are taken by what is played out of an older recording."""

    def __init__(self, script: Sequence[Step], cassette: Cassette) -> None:
        self._script = script
        self._cassette = cassette

    def __len__(self) -> int:
        return len(self._script) - int(self._cassette.play_count)

    def __getitem__(self, number: Any) -> Any:
        return self._script[self._cassette.play_count + number]


Begin = Callable[..., Tape]
Start = Callable[..., Tape]
"""Gets the provider and whether it is streamed, too."""


@pytest.fixture(params=MODELS)
def provider(request: pytest.FixtureRequest) -> str:
    """The provider whose wire format is used."""
    return str(request.param)


@pytest.fixture(params=MANNERS)
def is_streamed(request: pytest.FixtureRequest) -> bool:
    """Whether the model's answer is streamed."""
    return bool(request.param == "streamed")


@pytest.fixture
def begin(start_tape: Start, provider: str, *, is_streamed: bool) -> Begin:
    """To be called once, with the script; ``is_odd``: no real model would answer like this."""
    return partial(start_tape, provider, is_streamed=is_streamed)


@pytest.fixture
def start_tape(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    vcr: Cassette,
    record_mode: str,
) -> Iterator[Start]:
    """Begins to record or to play, once in a test."""
    item: pytest.Item = request.node
    replaced = ((str(tmp_path), "/somewhere"),)
    servers: list[tuple[ScriptedProvider, bool]] = []
    with ExitStack() as stack:

        def begun(
            provider: str, script: Sequence[Step], *, is_streamed: bool, is_odd: bool = False
        ) -> Tape:
            tape = item.stash[TAPE] = Tape(provider, is_streamed, vcr, replaced)
            is_real = provider in request.config.getoption("--real")
            if record_mode == "none":
                _require(Path(vcr.path), item)
                tape.replay = StrictReplay(vcr)
            if record_mode == "none" or is_odd or not is_real:
                for name, value in variables(provider, KEY).items():
                    monkeypatch.setenv(name, value)
            if record_mode != "none":
                if is_odd or not is_real:
                    server = stack.enter_context(serving(_Steps(script, vcr)))
                    servers.append((server, is_odd))
                    tape.url = server.url
                redirect(monkeypatch, tape.url)
            return tape

        yield begun
    is_new, vcr.dirty = vcr.dirty, False  # nothing is written if one of these fails
    for server, is_odd in servers:
        _check_server(server, is_odd=is_odd)
    if item.stash.get(PASSED, False):
        _check_tape(item)
        if is_new:
            _check_streams(vcr.responses, replaced)
        vcr.dirty = is_new


def _require(path: Path, item: pytest.Item) -> None:
    if not path.exists():
        name = item.name.partition("[")[0]
        pytest.fail(f"{shown(path)} is missing; record it: make record T={name}", pytrace=False)


def _check_server(server: ScriptedProvider, *, is_odd: bool) -> None:
    """Fail if a request was refused, or thinking dropped, or a step of the script left over."""
    if server.refused:
        _fail(f"the scripted provider refused a request: {server.refused[0]}")
    if server.dropped:
        _fail(f"thinking was sent back that does not fit: {server.dropped}")
    if server.not_offered and not is_odd:
        _fail(f"the script calls tools not offered: {server.not_offered}")
    if server.steps_left:
        _fail(f"only the first {len(server.requests)} steps of the script were asked for")


def _check_tape(item: pytest.Item) -> None:
    """Fail if nothing was recorded or played, or not all of it."""
    tape = item.stash.get(TAPE, None)
    if tape is None:
        _fail("the test never began its conversation: nothing was played")
    elif tape.replay and tape.replay.unplayed:
        numbers = ", ".join(str(number + 1) for number in tape.replay.unplayed)
        path = Path(tape.cassette.path)
        _fail(f"{shown(path)}: not played: {numbers} of {len(tape.cassette)}")


def _fail(text: str) -> None:
    pytest.fail(text, pytrace=False)


def _check_streams(responses: Sequence[Response], replaced: WrittenInstead) -> None:
    """Fail if text that must be scrubbed is spread over several events of a stream."""
    secrets = find_secrets()
    for number, one in enumerate(responses, 1):
        texts = join_stream(decode_body(one["body"]["string"]))
        if any(scrub(text, replaced, secrets) != text for text in texts):
            _fail(
                f"answer {number} holds a secret or the test's folder, cut over several events "
                "where it cannot be scrubbed; nothing is written. Let the test ask otherwise"
            )
