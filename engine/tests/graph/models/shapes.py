"""``SHAPES``: the answers in ``shapes.yaml``; ``serving_bytes``: a server that gives such bytes."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.provider.server import Handler, listening

EVENTS = "text/event-stream"
JSON = "application/json"
LINES = "application/x-ndjson"
"""As Ollama streams."""


@dataclass(frozen=True)
class Reply:
    """One answer, as its bytes."""

    content: bytes
    kind: str = JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> "Reply":
        """Server-sent events, a JSON text in each line, or one JSON text."""
        is_stream = text.startswith(("data: ", "event: "))
        return cls(text.encode(), EVENTS if is_stream else LINES if text[-1] == "\n" else JSON)


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

    class Replying(Handler):
        def do_POST(self) -> None:  # noqa: N802  # the name is http.server's
            server.requests.append((self.path, self.read_body()))
            reply = server.replies.pop(0)
            kind = {"content-type": reply.kind, "transfer-encoding": "chunked"}
            self.begin(reply.status, {**kind, **reply.headers})
            for piece in (*cut(reply.content, random), b""):
                self.send_chunk(piece)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Replying)
    server = ByteServer(f"http://127.0.0.1:{listener.server_port}", list(replies))
    with listening(listener):
        yield server
    assert server.replies == []


def cut(content: bytes, random: Random) -> Iterator[bytes]:
    """``content`` in pieces of 1 to 40 bytes: within words, characters and line ends."""
    start = 0
    while start < len(content):
        size = random.randint(1, 40)
        yield content[start : start + size]
        start += size


ARGS = {"path": "é.txt"}
"""Of each call."""


@dataclass(frozen=True)
class Shape:
    """One service's answer with calls of ``read_file``, and the one in words behind the results."""

    model: str
    reason: str
    sent_back: list[Any]
    """What of the answer the next request holds."""
    whole: Reply
    streamed: Reply
    last: tuple[Reply, Reply]
    """Whole, and streamed."""
    variables: dict[str, str]
    """The address, with ``{url}`` in it, and the key."""
    text: str = ""
    ids: tuple[str, ...] | None = None
    """None where LangChain makes them up."""
    parameters: dict[str, Any] = field(default_factory=dict)


def _read(row: dict[str, Any]) -> Shape:
    whole, streamed, *last = (
        Reply.of(row.pop(key)) for key in ("whole", "streamed", "last_whole", "last_streamed")
    )
    ids, sent_back = row.pop("ids", None), json.loads(row.pop("sent_back"))
    ids = ids and tuple(ids)
    return Shape(
        whole=whole, streamed=streamed, last=(last[0], last[1]), ids=ids, sent_back=sent_back, **row
    )


_FILE = Path(__file__).with_suffix(".yaml")
SHAPES = {
    name: _read(row) for name, row in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
}
ANTHROPIC, AZURE, KIMI, VLLM = (SHAPES[name] for name in ("anthropic", "azure", "kimi", "vllm"))
