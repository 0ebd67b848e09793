"""``AUTH_TOKEN`` on Aegra: no token, nothing; one user, no other's threads."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.clients.server.test_auth import (
    SETTINGS,
    people,
    test_a_store_belongs_to_whoever_filled_it,
    test_a_thread_belongs_to_whoever_made_it,
    test_without_a_token_nothing_is_answered,
)
from tests.harness.aegra import AegraServer, serving
from tests.harness.conversation import APPROVE
from tests.harness.server import Thread

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[AegraServer]:
    with serving(tmp_path_factory.mktemp("clone"), database, workers=1, **SETTINGS) as server:
        yield server
