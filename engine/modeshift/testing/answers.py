"""``recorded_answers`` and ``next_request``: what a provider's own client gets, and sends."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

from modeshift.modes.errors import ProviderError
from modeshift.testing.conversation import Conversation

_TRANSPORTS = ("httpcore", "httpcore2")
"""The libraries with which providers' clients send; the clients themselves are the real ones."""


class Sent(NamedTuple):
    """A request as a provider would have got it."""

    url: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """JSON."""


@contextmanager
def recorded_answers(*answers: bytes | tuple[int, bytes]) -> Iterator[list[Sent]]:
    """Give the providers' clients these answers, one for each request; yields the requests.

    An answer is the body, of JSON or of a stream, or the status and the body. A request for which
    there is no answer left is refused, and is among the requests, too. Nothing is sent anywhere.
    """
    requests: list[Sent] = []

    async def handle(_: object, request: Any) -> Any:
        content = b"".join([part async for part in request.stream])
        url = request.url
        port = f":{url.port}" if url.port else ""
        address = f"{url.scheme.decode()}://{url.host.decode()}{port}{url.target.decode()}"
        headers = {name.decode().lower(): value.decode() for name, value in request.headers}
        requests.append(Sent(address, headers, json.loads(content) if content else None))
        status, body = _choose(answers, len(requests))
        library = import_module(type(request).__module__.partition(".")[0])
        kind = [(b"content-type", _find_type(body)), (b"x-should-retry", b"false")]
        return library.Response(status, headers=kind, content=body)

    with ExitStack() as stack:
        for name in _TRANSPORTS:
            with suppress(ImportError):
                pool = import_module(name).AsyncConnectionPool
                stack.enter_context(patch.object(pool, "handle_async_request", handle))
        yield requests


def _choose(answers: tuple[bytes | tuple[int, bytes], ...], number: int) -> tuple[int, bytes]:
    if number > len(answers):
        text = f"request {number} has no answer: recorded_answers got {len(answers)}"
        return 422, json.dumps({"error": {"message": text}}).encode()
    answer = answers[number - 1]
    return (200, answer) if isinstance(answer, bytes) else answer


def _find_type(body: bytes) -> bytes:
    try:
        json.loads(body)
    except ValueError:
        is_lines = body.lstrip().startswith(b"{")
        return b"application/x-ndjson" if is_lines else b"text/event-stream"
    return b"application/json"


async def next_request(talk: Conversation, text: str, **host: object) -> Sent:
    """What the model is sent if the user says ``text``; ``host`` is the rest of the input.

    It gets no answer: the thread has the message, as if the provider were down. The model is a
    provider's, not a scripted one.
    """
    with recorded_answers() as requests, suppress(ProviderError):
        await talk.say(text, **host)
    if not requests:
        raise AssertionError("no provider was asked: the model is not one, or the thread waits")
    return requests[0]
