"""Own modes, commands in the sandbox and answers without a question's id, on two processes."""

from collections.abc import Iterator

import pytest

from tests.clients.server.test_server_modes import (
    MODES,
    test_a_bare_answer_is_for_a_question_that_its_client_has_seen,
    test_a_command_runs_unasked_and_only_where_it_may,
    test_a_second_answer_is_refused_and_approves_nothing_else,
)
from tests.harness.aegra import AegraServer, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[AegraServer]:
    folder = tmp_path_factory.mktemp("clone")
    for name in ("project", "home"):
        (folder / name).mkdir()
    (folder / "home/custom_modes.yaml").write_text(MODES)
    place = {"WORKSPACE": str(folder / "project"), "SANDBOX": "auto", "APPROVALS": "auto"}
    with serving(folder, database, 2, **place) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_files_of_the_test_before(server: AegraServer) -> None:
    for file in server.workspace.glob("*.txt"):
        file.unlink()
