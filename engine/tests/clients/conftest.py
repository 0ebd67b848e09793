"""A server for all tests that need no other settings, and its clients."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.harness.server import Server, Web, running

STUDIO = "https://smith.langchain.com"
LOGGED = 8_000
"""Characters of its server's log that a failed test shows."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    given = {
        "ALLOWED_ORIGINS": f"http://chat.example, http://localhost:3000,{STUDIO}",
        "CRON_SCHEDULER_SLEEP_TIME": "1",
    }
    with running(tmp_path_factory.mktemp("clone"), **given) as server:
        yield server


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that fails shows what its server has logged."""
    result: Any = yield
    report = result.get_result()
    server = getattr(item, "funcargs", {}).get("server")
    if report.failed and isinstance(server, Server) and server.log.exists():
        log = server.log.read_text(errors="replace")[-LOGGED:]
        report.sections.append(("the server's log", log))


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client as client:
        yield client


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    # No connection is used again: the server closes one that is idle for five seconds, which on a
    # busy machine is when the next request is on its way.
    alone = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=alone) as http:
        yield http


@pytest.fixture
def web(server: Server, client: LangGraphClient, http: httpx.AsyncClient) -> Web:
    """The server and both of its clients."""
    return Web(server, client, http)
