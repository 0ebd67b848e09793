"""``Tape``: a conversation, played from its cassette or recorded again; the fixture ``recorded``.

vcrpy does the work. What is added: the cassette is written only when its test has passed, and a
replay is strict.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import pytest
from vcr import VCR
from vcr.cassette import Cassette
from vcr.request import Request

from modeshift.models.provider_errors import find_secrets
from modeshift.modes.catalog import Catalog
from modeshift.project import find_root
from modeshift.testing.agent import load_modes, make_agent
from modeshift.testing.cassette_format import (
    StrictReplay,
    WrittenInstead,
    configure,
    decode_body,
    get_config,
    join_stream,
    scrub,
)
from modeshift.testing.conversation import Conversation, Recorded
from modeshift.testing.scripted import KEY, SOURCE, ScriptedService, ScriptStep
from modeshift.testing.steady import Steady

MODEL = "anthropic:claude-sonnet-5-5"
"""The model of a test that names none."""
HOST = "http://127.0.0.1:8080"
"""The address that recordings have for a server of the user's own."""
PASSED = pytest.StashKey[bool]()


def add_options(parser: pytest.Parser) -> None:
    """The options that ``make record`` sets."""
    group = parser.getgroup("cassettes", "cassettes; `make record` sets these")
    group.addoption("--record", choices=["scripted", "real"], help="who is recorded")
    group.addoption(
        "--server",
        nargs=2,
        metavar=("URL", "MODEL"),
        help="the user's own, of which tests are recorded that name no model",
    )
    group.addoption("--cassettes", help="the folder they are in")
    group.addoption("--prune", action="store_true", help="remove those of modes that are gone")


def is_real(config: pytest.Config) -> bool:
    """Whether tests may reach a provider."""
    return bool(config.getoption("--record") == "real" or config.getoption("--server"))


def name_cassette(item: pytest.Item) -> str:
    """The name of a test's cassette without its ending: no brackets, which a shell would expand."""
    marker = item.get_closest_marker("default_cassette")
    name = marker.args[0] if marker else item.name
    return str(name).replace("[", "-").replace("]", "")


def find_model(requests: Sequence[Request]) -> tuple[str, str]:
    """What was recorded, as OPENAI_BASE_URL and MODEL; a service has no address."""
    uri = requests[0].uri if requests else ""
    address, is_chat, _ = uri.rpartition("/chat/completions")
    return (address, f"openai:{decode_body(requests[0].body)['model']}") if is_chat else ("", MODEL)


class Tape:
    """The cassette of a running test."""

    def __init__(
        self,
        path: Path,
        workspace: Path,
        config: pytest.Config,
        patch: pytest.MonkeyPatch,
        stack: ExitStack,
    ) -> None:
        """Read the cassette, or get ready to write it when the stack is closed."""
        self.path, self._workspace, self._patch = path, workspace, patch
        self.replaced: WrittenInstead = ((str(workspace.parent), "/somewhere"),)
        self._source: str | None = config.getoption("--record")
        self._server: tuple[str, str] | None = config.getoption("--server")
        self._prunes: bool = config.getoption("--prune")
        self.is_recorded = bool(self._source or self._server)
        """Whether the test is recorded, and not played."""
        self.service: ScriptedService | None = None
        self._services: tuple[str, ...] = ()
        mode = "all" if self.is_recorded else "none"
        vcr = VCR(record_mode=mode)
        configure(vcr)
        options = get_config(self.replaced, mode, path)
        clean = options["before_record_request"]
        options["before_record_request"] = lambda request: (
            None if request.uri.startswith(self._services) else clean(request)
        )
        self.cassette: Cassette = stack.enter_context(vcr.use_cassette(str(path), **options))
        self.replay = None if self.is_recorded else StrictReplay(self.cassette)

    def start(
        self,
        *steps: ScriptStep,
        model: str | None = None,
        modes: Sequence[str] = (),
        is_streamed: bool = True,
        services: Sequence[str] = (),
        **options: Any,
    ) -> Conversation:
        """A thread of the clone's agent, with these of its modes; the first is the default.

        Requests of tools to the addresses ``services`` are neither recorded nor played.
        """
        self._services = tuple(services)
        if modes:
            options["modes"] = self._choose(modes)
        if not self.is_recorded and not self.path.exists():
            test = self.path.stem.partition("-")[0]
            pytest.fail(f"{self.path} is missing; record it: make record T={test}", pytrace=False)
        address, name = find_model([] if self.is_recorded else self.cassette.requests)
        if self._server is not None and model is None:
            address, name = self._server
            self._redirect(urlsplit(address)._replace(path="").geturl())
            self._patch.setenv("OPENAI_BASE_URL", HOST + urlsplit(address).path.rstrip("/"))
        elif self._source == "scripted":
            self._script(steps, model or MODEL)
        elif self.is_recorded:
            self._redirect(None)
        elif address:
            self._patch.setenv("OPENAI_BASE_URL", address)
        if self.replay is not None:
            options.setdefault("only_tools", _list_tools(self.cassette.requests))
        agent = make_agent(self._workspace, model or name, **options)
        return Conversation(agent, is_streamed=is_streamed)

    def _choose(self, slugs: Sequence[str]) -> Catalog:
        catalog = load_modes().catalog
        for slug in slugs:
            if slug not in catalog:
                if self._prunes:
                    self.path.unlink(missing_ok=True)
                pytest.skip(f"there is no mode {slug!r} any more")
        return Catalog((catalog[slug] for slug in slugs), slugs[0])

    def _script(self, steps: Sequence[ScriptStep], model: str) -> None:
        if (known := _read_source(self.path)) not in ("", SOURCE):
            pytest.skip(f"recorded of {known}, and kept: for the scripted provider delete it")
        if not model.startswith("anthropic:"):
            pytest.skip(f"only the real {model} can be recorded: set its key")
        self._patch.setenv("ANTHROPIC_API_KEY", KEY)
        self.service = service = ScriptedService(steps)

        async def answer(_: object, request: httpcore2.Request) -> httpcore2.Response:
            stream: Any = request.stream
            parts = [part async for part in stream]
            status, kind, body = service.answer(b"".join(parts))
            headers = [("content-type", kind), ("server", SOURCE)]
            return httpcore2.Response(status, headers=headers, content=body)

        self._patch.setattr(httpcore2.AsyncConnectionPool, "handle_async_request", answer)

    def _redirect(self, to: str | None) -> None:
        """Send the requests of the provider's client to the server ``to``, if there is one.

        Below the client and vcrpy, so that both see another address. Connections are closed after
        each request, because LangChain's clients outlive a test's event loop.
        """
        pool, steady = httpcore2.AsyncConnectionPool, Steady()
        handle = pool.handle_async_request

        async def redirected(
            self: httpcore2.AsyncConnectionPool, request: httpcore2.Request
        ) -> httpcore2.Response:
            replaced = {b"connection": b"close"}
            if to is not None:
                request.url = httpcore2.URL(to + request.url.target.decode())
                replaced |= {b"host": urlsplit(to).netloc.encode(), b"accept-encoding": b"identity"}
            kept = [pair for pair in request.headers if pair[0].lower() not in replaced]
            request.headers = [*kept, *replaced.items()]
            response = await handle(self, request)
            return response if to is None else await steady.make_response(response)

        self._patch.setattr(pool, "handle_async_request", redirected)

    def check(self) -> str | None:
        """What is wrong with the cassette now that the test has run."""
        if self.service is not None and self.service.steps_left:
            return f"only the first {self.service.requests} steps of the script were asked for"
        if self.is_recorded and not len(self.cassette):
            return "the test never began its conversation: nothing was recorded"
        if self.replay is not None and self.replay.unplayed:
            numbers = ", ".join(str(number + 1) for number in self.replay.unplayed)
            return f"{self.path}: not played: {numbers} of {len(self.cassette)}"
        return self._check_streams() if self.is_recorded else None

    def _check_streams(self) -> str | None:
        """Whether text that must be scrubbed is spread over several events of a stream."""
        secrets = find_secrets()
        for number, one in enumerate(self.cassette.responses, 1):
            texts = join_stream(decode_body(one["body"]["string"]))
            if any(scrub(text, self.replaced, secrets) != text for text in texts):
                return (
                    f"answer {number} holds a secret or the test's folder, cut over several events "
                    "where it cannot be scrubbed; nothing is written. Let the test ask otherwise"
                )
        return None


def _read_source(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found = re.search(r"^ +server:\s+- (.+)", text, re.M)
    return found[1] if found else ""


def _list_tools(requests: Sequence[Request]) -> set[str]:
    """The names of all tools that were offered; a replay leaves out what the clone got later."""
    bodies = [decode_body(request.body_bytes) for request in requests]
    tools = [tool for body in bodies if isinstance(body, dict) for tool in body.get("tools", [])]
    return {tool.get("function", tool)["name"] for tool in tools}


@pytest.fixture
def recorded(
    request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Recorded]:
    """To call once: the thread, whose model answers as in ``cassettes/<module>/<test>.yaml``."""
    item: pytest.Item = request.node
    folder = Path(request.config.getoption("--cassettes") or find_root() / "cassettes")
    path = folder / request.path.stem / f"{name_cassette(item)}.yaml"
    with ExitStack() as stack:
        tape = Tape(path, workspace, request.config, monkeypatch, stack)
        yield tape.start
        problem = tape.check() if item.stash.get(PASSED, False) else None
        tape.cassette.dirty = tape.is_recorded and item.stash.get(PASSED, False) and not problem
    if tape.replay is not None and tape.replay.refused:
        problem = tape.replay.refused[0]
    if problem:
        pytest.fail(problem, pytrace=False)
