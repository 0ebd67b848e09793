"""Records and replays cassettes: a test calls the fixture ``begin`` to start its conversation.

In replay, the requests of the model's client must equal the recorded ones, and all of them must
be made. With ``--record``, a test that passes writes its cassette: recorded from the scripted
provider, or from the real service of each ``--real``.

This uses vcrpy without pytest-recording, which deletes the old cassette before the test that
records it has passed, and cannot say what differs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpcore2
import pytest
from vcr.cassette import Cassette
from vcr.filters import decode_response
from vcr.persisters.filesystem import CassetteNotFoundError
from vcr.record_mode import RecordMode

from graph.models.secrets import find_secrets
from graph.replay.cassette import (
    Header,
    Interaction,
    Json,
    Recording,
    Request,
    Response,
    decode_body,
    load_cassette,
)
from graph.replay.player import LOCAL_SERVER, OTHER_CLIENTS
from graph.settings import ROOT
from modes.errors import ConfigurationError
from tests.harness.cassette_writer import SCRIPTED, dump_cassette, is_same
from tests.harness.scrubbing import Replaced, keep_headers, scrub
from tests.harness.strict_player import StrictPlayer
from tests.provider.script import Step
from tests.provider.server import KEY, ScriptedProvider, serving

MODELS = {
    "openai": "openai:gpt-5.6",
    "chat": "openai:qwen3",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
"""``chat`` is any server that speaks OpenAI's Chat Completions."""
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
MANNERS = ("whole", "streamed")
PASSED = pytest.StashKey[bool]()
TAPE = pytest.StashKey["Tape"]()
WRITTEN = pytest.StashKey[list[str]]()


def cassette_of(item: pytest.Item) -> Path:
    """``cassettes/<test module>/<test>.yaml``, with dashes for brackets."""
    name = item.name.replace("[", "-").replace("]", "")
    return Path(item.config.getoption("--cassettes")) / item.path.stem / f"{name}.yaml"


def shown(path: Path) -> str:
    """The path relative to the project, if it is inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def variables(provider: str, key: str) -> dict[str, str]:
    """The environment variables with which a model of the provider can be used."""
    if provider in KEYS:
        return {KEYS[provider]: key}
    return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": LOCAL_SERVER}


class _Kept:
    """Keeps in memory what vcrpy would write to a file."""

    def __init__(self) -> None:
        self.data: dict[str, list[Any]] = {"requests": [], "responses": []}

    def load_cassette(self, _: str, **__: Any) -> NoReturn:
        raise CassetteNotFoundError

    def save_cassette(self, _: str, data: dict[str, list[Any]], **__: Any) -> None:
        self.data = data

    def interactions(self, replaced: Replaced) -> list[Interaction]:
        """The requests and responses, scrubbed."""
        secrets = find_secrets()
        found = []
        for request, raw in zip(self.data["requests"], self.data["responses"], strict=True):
            response = decode_response(raw)
            sent = Request(
                request.method,
                scrub(request.uri, replaced, secrets),
                keep_headers(request.headers.items()),
                scrub(decode_body(request.body_bytes), replaced, secrets),
            )
            got = Response(
                response["status"]["code"],
                keep_headers(response["headers"].items()),
                scrub(decode_body(response["body"]["string"]), replaced, secrets),
            )
            found.append(Interaction(sent, got))
        return found


def redirect(patch: pytest.MonkeyPatch, to: str | None) -> None:
    """Send the requests of the providers' clients to the server ``to``, unless it is None."""
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


@contextmanager
def listening(to: str | None) -> Iterator[_Kept]:
    """Record the traffic of the providers' clients; ``to`` redirects it to another server.

    The redirect happens below the client and vcrpy, so that both see the service's own address:
    ``ChatOpenAI`` sends other requests to other addresses. Connections are closed after each
    request, because LangChain's clients outlive a test's event loop.
    """
    kept = _Kept()
    with pytest.MonkeyPatch.context() as patch:
        redirect(patch, to)
        with Cassette.use(
            path="unwritten",
            persister=kept,
            record_mode=RecordMode.ALL,
            skip_patchers=OTHER_CLIENTS,
        ):
            yield kept


@dataclass
class Tape:
    """The cassette of a running test, recorded or played."""

    provider: str
    is_streamed: bool
    path: Path
    replaced: Replaced
    player: StrictPlayer | None = None
    url: str | None = None
    """Of the scripted provider."""
    more: list[Interaction] = field(default_factory=list)
    """Interactions that another process recorded."""

    def recording(self, found: tuple[Interaction, ...]) -> Recording:
        """The recording with its header."""
        service = urlsplit(found[0].request.uri).hostname if found else None
        source = SCRIPTED if self.url is not None else str(service)
        today = datetime.now(UTC).date().isoformat()
        return Recording(Header(source, MODELS[self.provider], self.is_streamed, today), found)

    def hand_over(self, part: Path) -> None:
        """Write the interactions that are left to ``part``, for another process to play."""
        if self.player is not None:
            left = self.player.unplayed
            chosen = tuple(self.player.recording.interactions[number] for number in left)
            part.write_text(
                dump_cassette(Recording(self.player.recording.recorded, chosen), "a part")
            )
            self.player.play_counts.update(left)

    def take_back(self, part: Path) -> None:
        """Add the interactions that the other process recorded."""
        if self.player is None:
            self.more += load_cassette(part).interactions


Begin = Callable[..., Tape]


@pytest.fixture(params=MODELS)
def provider(request: pytest.FixtureRequest) -> str:
    """The provider whose wire format is used."""
    return str(request.param)


@pytest.fixture(params=MANNERS)
def is_streamed(request: pytest.FixtureRequest) -> bool:
    """Whether the model's answer is streamed."""
    return bool(request.param == "streamed")


@pytest.fixture
def begin(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    *,
    is_streamed: bool,
) -> Iterator[Begin]:
    """To be called once, with the script; ``is_odd``: no real model would answer like this."""
    item: pytest.Item = request.node
    tape = Tape(provider, is_streamed, cassette_of(item), ((str(tmp_path), "/somewhere"),))
    item.stash[TAPE] = tape
    is_real = provider in request.config.getoption("--real")
    kept: list[_Kept] = []
    servers: list[tuple[ScriptedProvider, bool]] = []
    with ExitStack() as stack:

        def begun(script: Sequence[Step], *, is_odd: bool = False) -> Tape:
            if not request.config.getoption("--record"):
                for name, value in variables(provider, "replayed").items():
                    monkeypatch.setenv(name, value)
                recording = _recording(item, tape)
                playing = StrictPlayer.use(
                    recording=recording, path=shown(tape.path), replaced=tape.replaced
                )
                tape.player = stack.enter_context(playing)
                return tape
            if is_odd or not is_real:
                for name, value in variables(provider, KEY).items():
                    monkeypatch.setenv(name, value)
                server = stack.enter_context(serving(script))
                servers.append((server, is_odd))
                tape.url = server.url
            kept.append(stack.enter_context(listening(tape.url)))
            return tape

        yield begun
    for server, is_odd in servers:
        _check(server, is_odd=is_odd)
    has_passed = item.stash.get(PASSED, False)
    if has_passed and tape.player is None and not kept:
        pytest.fail("the test never began its conversation: nothing was played", pytrace=False)
    if kept and has_passed:
        found = (*kept[0].interactions(tape.replaced), *tape.more)
        _check_streams(found, tape.replaced)
        _write(item, tape.recording(found), tape.path)
    elif tape.player is not None and has_passed and tape.player.unplayed:
        pytest.fail(_left(tape, tape.player), pytrace=False)


def _recording(item: pytest.Item, tape: Tape) -> Recording:
    if not tape.path.exists():
        name = item.name.partition("[")[0]
        pytest.fail(
            f"{shown(tape.path)} is missing; record it: make record T={name}",
            pytrace=False,
        )
    recording = load_cassette(tape.path)
    expected = (MODELS[tape.provider], tape.is_streamed)
    assert (recording.recorded.model, recording.recorded.streamed) == expected
    return recording


def _left(tape: Tape, player: StrictPlayer) -> str:
    numbers = ", ".join(str(number + 1) for number in player.unplayed)
    total = len(player.recording.interactions)
    return f"{shown(tape.path)}: not played: {numbers} of {total}"


def _check(server: ScriptedProvider, *, is_odd: bool) -> None:
    """Fail if a request was refused, or thinking dropped, or a step of the script left over."""
    if server.refused:
        pytest.fail(f"the scripted provider refused a request: {server.refused[0]}", pytrace=False)
    if server.dropped:
        pytest.fail(f"thinking was sent back that does not fit: {server.dropped}", pytrace=False)
    if server.not_offered and not is_odd:
        pytest.fail(f"the script calls tools not offered: {server.not_offered}", pytrace=False)
    if server.steps_left:
        count = len(server.requests)
        pytest.fail(f"only the first {count} steps of the script were asked for", pytrace=False)


def _check_streams(found: tuple[Interaction, ...], replaced: Replaced) -> None:
    """Fail if text that must be scrubbed is spread over several events of a stream."""
    for number, one in enumerate(found, 1):
        for text in said_in(one.response.body):
            if scrub(text, replaced, find_secrets()) != text:
                pytest.fail(
                    f"answer {number} holds a secret or the test's folder, cut over several events "
                    "where it cannot be scrubbed; nothing is written. Let the test ask otherwise",
                    pytrace=False,
                )


def said_in(stream: Json) -> list[str]:
    """The texts of a stream, joined over its events, one for each name of a field."""
    texts: dict[str, str] = {}

    def gather(value: Json, key: str) -> None:
        match value:
            case dict():
                for name, one in value.items():
                    gather(one, name)
            case list():
                for one in value:
                    gather(one, key)
            case str():
                texts[key] = texts.get(key, "") + value

    for line in stream.splitlines() if isinstance(stream, str) else ():
        gather(decode_body(line.removeprefix("data: ")), "")
    return list(texts.values())


def _write(item: pytest.Item, recording: Recording, path: Path) -> None:
    """Write the cassette, unless only the date has changed."""
    with suppress(ConfigurationError):  # none yet, or one that is broken
        if is_same(recording, load_cassette(path)):
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as new:
        try:
            new.write(dump_cassette(recording, f"Of {item.nodeid}, by `make record`"))
            new.flush()
            Path(new.name).chmod(0o644)
            Path(new.name).replace(path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise
    item.config.stash.setdefault(WRITTEN, []).append(shown(path))
