"""Two processes of Aegra on one port, on a Postgres of the tests' own."""

from collections.abc import Iterator

import pytest

from tests.doors.conftest import STUDIO
from tests.harness.aegra import IS_THERE, WHY_NOT, AegraServer, serving
from tests.harness.postgres import find_postgres, run_postgres


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    programs = find_postgres()
    if not IS_THERE or programs is None:
        pytest.skip(WHY_NOT if programs else "Postgres is not installed (apt install postgresql)")
    with run_postgres(programs) as postgres:
        yield postgres.make_database()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[AegraServer]:
    origins = f"http://chat.example, http://localhost:3000,{STUDIO}"
    with serving(tmp_path_factory.mktemp("clone"), database, ALLOWED_ORIGINS=origins) as server:
        yield server
