"""Each database in turn: a test that takes ``database`` runs on all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from modeshift.storage.database import Database
from modeshift.storage.opening import open_database
from tests.harness.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """What ``DATABASE_URL`` is."""
    if request.param == "sqlite":
        return ""
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()


@pytest.fixture
async def database(url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_database(url, tmp_path / "threads.sqlite")
    yield opened
    await opened.close()
