"""The streamable HTTP transport: the SDK's, with answers of bounded size.

The SDK follows no redirect to another host, so headers go nowhere else.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from modeshift.mcp.bounds import MAX_BYTES, Failure, mend_text

CONNECT_SECONDS = 30
IDLE_SECONDS = 300
"""After which an open answer that says nothing is closed; calls have their own limit."""
SECONDS_TO_LISTEN = 1
"""Between streams of messages: the server says when to open the next, and may say at once."""


@asynccontextmanager
async def open_http(
    url: str, headers: Mapping[str, str], seconds: float, failure: Failure
) -> AsyncIterator[Any]:
    """Streams of messages to and from the address."""
    given = {**headers, "Accept-Encoding": "identity"}  # a few bytes could be gigabytes

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("it sent a compressed answer, which nobody asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, failure)

    async def slow_down(request: httpx2.Request) -> None:
        if request.method == "GET":
            await asyncio.sleep(SECONDS_TO_LISTEN)

    def build_client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=given,
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(seconds, IDLE_SECONDS)),
            event_hooks={"request": [slow_down], "response": [bound]},
        )

    client = await asyncio.to_thread(build_client)  # it reads certificates
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, failure: Failure) -> None:
        self._stream = stream
        self._failure = failure

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, rest = MAX_BYTES, b""
        async for block in self._stream:
            left -= len(block)
            if left < 0:
                self._failure.report(f"it sent an answer of more than {MAX_BYTES} bytes")
                raise httpx2.ReadError(self._failure.reason)
            lines, end, rest = (rest + block).rpartition(b"\n")
            yield mend_text(lines + end)
        yield mend_text(rest)

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()
