"""``MODELS`` of three formats, ``is_streamed``; ``redirect`` sends real clients elsewhere."""

from typing import Any

import httpcore2
import pytest

MODELS = {
    "openai": "openai:gpt-5.6",
    "chat": "openai:qwen3",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
"""``chat`` is any server that speaks OpenAI's Chat Completions."""
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@pytest.fixture(params=("whole", "streamed"))
def is_streamed(request: pytest.FixtureRequest) -> bool:
    """Whether the model's answer is streamed."""
    return bool(request.param == "streamed")


def redirect(patch: pytest.MonkeyPatch, to: str) -> None:
    """Send the requests of the providers' clients to the server ``to``.

    The redirect happens below the client, which sees the service's own address: ``ChatOpenAI``
    sends other requests to other addresses. Connections are closed after each request, because
    LangChain's clients outlive a test's event loop.
    """
    pool = httpcore2.AsyncConnectionPool
    handle = pool.handle_async_request

    async def redirected(self: Any, request: httpcore2.Request) -> Any:
        names = [(name, value) for name, value in request.headers if name.lower() != b"connection"]
        request.headers = [*names, (b"connection", b"close")]
        request.url = httpcore2.URL(to + request.url.target.decode())
        return await handle(self, request)

    patch.setattr(pool, "handle_async_request", redirected)
