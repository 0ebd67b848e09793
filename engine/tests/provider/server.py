"""``ScriptedProvider``: the services on one loopback port."""

import gzip
import json
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType
from typing import Any

from tests.provider import anthropic_messages, openai_chat, openai_responses
from tests.provider.prompt_cache import Input, PromptCache
from tests.provider.script import Answer, Driver, Failure, Ids, Raw, Step, list_said

KEY = "sk-modeshift-test-0123456789abcdef"
"""The key that the services take."""
SOURCE = "scripted provider"
WIRES: dict[str, ModuleType] = {
    wire.PATH: wire for wire in (openai_chat, openai_responses, anthropic_messages)
}


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]


class ScriptedProvider:
    """Answers by ``script``, one step for each request, or by a driver.

    A request that the real service would refuse is refused, and takes no step.
    """

    def __init__(
        self,
        script: Sequence[Step] | Driver,
        key: str = KEY,
        unknown: str | None = None,
        window: int | None = None,
    ) -> None:
        """``unknown`` is a field or a beta header that this service does not know.

        ``window`` is how many tokens of input its models read; more is refused, and asks for no
        step.
        """
        self.script = script
        self.key = key
        self.unknown = unknown
        self.window = window
        self.cache = PromptCache()
        self.requests: list[Request] = []
        self.refused: list[str] = []
        """Why requests were refused that no step wanted refused."""
        self.inputs: list[Input] = []
        """Of the requests that were answered: their tokens, and which of them the cache held."""
        self.too_long: list[int] = []
        """The tokens of those that the window is too small for."""
        self.dropped: list[str] = []
        """Where thinking stood that was sent back, and does not fit what is before it."""
        self.not_offered: list[str] = []
        """The names of tools that answers called, and the requests did not offer."""
        self.last_event = 0.0
        """When a stream's last event was sent, on the monotonic clock."""
        self.ids = Ids()
        self._taken = 0
        handler = type("Handler", (_Handler,), {"provider": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def settings(self) -> dict[str, str]:
        """The environment with which OpenAI's and Anthropic's clients come here."""
        return {
            "OPENAI_API_KEY": self.key,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "ANTHROPIC_API_KEY": self.key,
            "ANTHROPIC_BASE_URL": self.url,
        }

    @property
    def steps_left(self) -> int:
        """Steps that no request has asked for."""
        return 0 if callable(self.script) else len(self.script) - self._taken

    def step(self, wire: ModuleType, request: Request) -> Step:
        """What is to be answered."""
        self.requests.append(request)
        if failed := self._failure(wire, request) or self.ask_other(request.body):
            return failed
        self.dropped += wire.dropped(request.body)
        if callable(self.script):
            return self.script(list_said(wire.asked(request.body)))
        self._taken += 1
        return self.script[self._taken - 1]

    def _failure(self, wire: ModuleType, request: Request) -> Failure | None:
        """Why nothing is answered, whatever the script says, or None."""
        if wire.given_key(request.headers) != self.key:
            return Failure("key")
        if self.unknown and self.unknown in json.dumps([*request.headers.values(), request.body]):
            return Failure("request", wire.refusal(self.unknown, request.headers))
        if problem := wire.problem(request.headers, request.body):
            return self._refuse(problem)
        if self.window is not None and (tokens := wire.count(request.body)) > self.window:
            self.too_long.append(tokens)
            return Failure("context", tokens=tokens, window=self.window)
        if not callable(self.script) and not self.steps_left:
            return self._refuse("the script is at its end")
        return None

    def ask_other(self, body: dict[str, Any]) -> Failure | None:
        """Why another server that is asked, too, does not answer the request."""
        return None

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Status and body for what a client wants to know of the service."""
        return 404, {"error": f"there is nothing at {path}"}

    def _refuse(self, why: str) -> Failure:
        self.refused.append(why)
        return Failure("request", why)

    def take(self, wire: ModuleType, body: dict[str, Any], step: Step) -> Input:
        """The input of a request that is answered."""
        tokens: Input = wire.take(self.cache, self.key, body)
        self.inputs.append(tokens)
        if isinstance(step, Answer):
            called = [call.name for call in step.calls]
            self.not_offered += [name for name in called if name not in wire.offered(body)]
        return tokens


@contextmanager
def listening(server: ThreadingHTTPServer) -> Iterator[None]:
    """A server's requests are handled in a thread, until the block ends."""
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving(
    script: Sequence[Step] | Driver,
    key: str = KEY,
    unknown: str | None = None,
    window: int | None = None,
) -> Iterator[ScriptedProvider]:
    """A provider that is served by a thread, ended with the block."""
    provider = ScriptedProvider(script, key, unknown, window)
    with listening(provider.server):
        yield provider


class Handler(BaseHTTPRequestHandler):
    """One request to a connection: LangChain's clients keep theirs beyond a test's event loop."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def read_body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return body

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_chunk(self, content: bytes) -> None:
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()


class _Handler(Handler):
    provider: ScriptedProvider

    def version_string(self) -> str:
        """The header ``server``, by which a cassette says what it was recorded of."""
        return SOURCE

    def do_GET(self) -> None:
        self._send(*self.provider.get(self.path), {})

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.read_body()
        wire = WIRES.get(self.path.partition("?")[0])
        if wire is None:
            self._send(404, {"error": f"there is nothing at {self.path}"}, {})
            return
        step = self.provider.step(wire, Request(self.path, headers, body))
        if isinstance(step, Failure) and not step.mid_stream:
            status, error = step.as_sent or wire.failure(
                step, wire.given_key(headers), body, self.provider.ids
            )
            more = {"retry-after": step.retry_after} if step.retry_after else {}
            self._send(status, error, {**wire.headers(self.provider.ids), **more})
        elif body.get("stream"):
            self._stream(wire, step, body)
        else:
            assert isinstance(step, Answer)
            time.sleep(step.pause)
            tokens = self.provider.take(wire, body, step)
            sent = wire.as_json(step, body, self.provider.ids, tokens)
            self._send(200, sent, wire.headers(self.provider.ids))

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        content = json.dumps(body, ensure_ascii=False).encode()
        if "gzip" in self.headers.get("accept-encoding", ""):
            content = gzip.compress(content, mtime=0)
            headers = {**headers, "content-encoding": "gzip"}
        kind = {"content-type": "application/json", "content-length": str(len(content))}
        self.begin(status, {**kind, **headers})
        self.wfile.write(content)

    def _stream(self, wire: ModuleType, step: Step, body: dict[str, Any]) -> None:
        kind = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
        self.begin(200, {**kind, **wire.headers(self.provider.ids)})
        answer = step if isinstance(step, Answer) else Answer("Let me see what")
        tokens = self.provider.take(wire, body, step)
        events = wire.as_events(answer, body, self.provider.ids, tokens)
        if isinstance(step, Failure):
            events = [*events[:3], wire.error_event(step, body, self.provider.ids)]
        elif isinstance(step, Raw):
            events = [f"data: {json.dumps(event)}\n\n" for event in step.events]
            events.append("data: [DONE]\n\n")
        for number, event in enumerate(events[: answer.events]):
            if answer.go_on is not None and number == len(events) // 2:
                answer.go_on.acquire()
            self.send_chunk(event.encode())
            self.provider.last_event = time.monotonic()
            time.sleep(answer.pause)
        if answer.ending == "broken":
            self._reset()
        else:
            self.send_chunk(b"")

    def _reset(self) -> None:
        at_once = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.connection.shutdown(socket.SHUT_RDWR)
