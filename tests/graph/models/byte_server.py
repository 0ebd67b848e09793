"""A loopback server that answers with given bytes, in pieces that are cut anywhere."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import Any

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Reply:
    """One answer, as its bytes."""

    content: bytes
    kind: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def whole(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """An answer in one piece of JSON."""
    return Reply(
        json.dumps(data, ensure_ascii=False).encode(), status=status, headers=headers or {}
    )


def events(*given: Any, end: str = "data: [DONE]\n\n") -> Reply:
    """Server-sent events; one with a ``type`` is named after it, as Anthropic's are."""
    text = "".join(
        (f"event: {one['type']}\n" if "type" in one else "")
        + f"data: {json.dumps(one, ensure_ascii=False)}\n\n"
        for one in given
    )
    return Reply(f"{text}{end}".encode(), EVENTS)


def lines(*given: Any) -> Reply:
    """A JSON text in each line, as Ollama streams."""
    return Reply("".join(f"{json.dumps(one)}\n" for one in given).encode(), LINES)


@dataclass
class ByteServer:
    """Its address, and the requests as they came: the path, and the body."""

    url: str
    replies: list[Reply]
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def serving_bytes(replies: Sequence[Reply], seed: int = 0) -> Iterator[ByteServer]:
    """A server that gives one reply to each request; all have been asked for in the end."""
    random = Random(seed)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.requests.append((self.path, body))
            reply = server.replies.pop(0)
            self.send_response(reply.status)
            sent = {"content-type": reply.kind, "transfer-encoding": "chunked", **reply.headers}
            for name, value in {**sent, "connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in (*cut(reply.content, random), b""):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server = ByteServer(f"http://127.0.0.1:{listener.server_port}", list(replies))
    thread = Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
    assert server.replies == []


def cut(content: bytes, random: Random) -> Iterator[bytes]:
    """``content`` in pieces of 1 to 40 bytes: within words, characters and line ends."""
    start = 0
    while start < len(content):
        size = random.randint(1, 40)
        yield content[start : start + size]
        start += size
