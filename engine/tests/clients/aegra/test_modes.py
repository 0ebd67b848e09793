"""Own modes, commands in the sandbox and answers without a question's id, on two processes."""

import pytest

from tests.clients.server.test_server_modes import (
    test_a_bare_answer_is_for_a_question_that_its_client_has_seen,
    test_a_command_runs_unasked_and_only_where_it_may,
    test_a_second_answer_is_refused_and_approves_nothing_else,
)
from tests.harness.aegra import AegraServer

pytestmark = pytest.mark.slow


@pytest.fixture
def server(own_server: AegraServer) -> AegraServer:
    """Without the files of the test before."""
    for file in own_server.workspace.glob("*.txt"):
        file.unlink()
    return own_server
