"""Two processes of Aegra on one port, on a Postgres of the tests' own."""

from collections.abc import Iterator

import pytest

from tests.clients.conftest import STUDIO
from tests.harness.aegra import IS_THERE, WHY_NOT, AegraServer, serving
from tests.harness.postgres import Postgres


@pytest.fixture(scope="session")
def is_there() -> None:
    if not IS_THERE:
        pytest.skip(WHY_NOT)


@pytest.fixture(scope="session")
def database(is_there: None, postgres: Postgres) -> str:
    return postgres.make_database()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[AegraServer]:
    origins = f"http://chat.example, http://localhost:3000,{STUDIO}"
    # In no clone's folder: another clone works there, too.
    settings = {"WORKSPACE": str(tmp_path_factory.mktemp("workspace")), "ALLOWED_ORIGINS": origins}
    with serving(tmp_path_factory.mktemp("clone"), database, 2, **settings) as server:
        yield server
