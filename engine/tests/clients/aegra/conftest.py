"""Two processes of Aegra on one port, on a Postgres of the tests' own."""

from collections.abc import Iterator

import pytest

from tests.clients.conftest import STUDIO
from tests.clients.page.browser import Script, follow
from tests.clients.page.conftest import MODES
from tests.clients.server.test_server_modes import MODES as MORE_MODES
from tests.harness.aegra import IS_THERE, WHY_NOT, AegraServer, serving
from tests.harness.postgres import Postgres
from tests.provider import server as provider_server


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


@pytest.fixture(scope="package")
def script() -> Script:
    """What the model of ``own_server`` answers; to be added to."""
    return {}


@pytest.fixture(scope="package")
def own_server(
    tmp_path_factory: pytest.TempPathFactory, database: str, script: Script
) -> Iterator[AegraServer]:
    """With own modes, a scripted model and a sandbox."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("project", "home"):
        (folder / name).mkdir()
    modes = MODES + MORE_MODES.partition("customModes:\n")[2]
    (folder / "home/custom_modes.yaml").write_text(modes)
    place = {"WORKSPACE": str(folder / "project"), "SANDBOX": "auto"}
    with (
        provider_server.serving(follow(script)) as provider,
        serving(folder, database, 2, **place, **provider.settings) as server,
    ):
        yield server
