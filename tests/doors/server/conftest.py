"""The client of a module's ``server``."""

from collections.abc import AsyncIterator

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.harness.server import Server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client as client:
        yield client
