"""Fixtures and hooks of the engine's tests, whose clone is the template."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from modeshift.project import use_root
from modeshift.testing.cassette_format import configure
from modeshift.testing.plugin import (
    loopback_only,
    no_provider_of_the_user,
    pytest_collection_modifyitems,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    snapshot,
    workspace,
)
from modeshift.testing.recording import add_options as pytest_addoption
from modeshift.testing.recording import is_real, recorded
from tests.harness import prefork
from tests.harness.conversation import Conversation, make_agent
from tests.harness.place import UserFolders
from tests.harness.postgres import WHY_NOT, Postgres, find_postgres, run_postgres
from tests.harness.recording import is_streamed
from tests.harness.root import TEMPLATE

__all__ = [
    "is_streamed",
    "loopback_only",
    "no_provider_of_the_user",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "recorded",
    "snapshot",
    "workspace",
]
FENCE = str(Path(__file__).parent / "fence")
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    configure(vcr)


def pytest_configure(config: pytest.Config) -> None:
    use_root(TEMPLATE)
    config.addinivalue_line("markers", "recorded: has a cassette; what make record records anew")
    config.addinivalue_line("markers", "snapshots: writes files of texts in make snapshots")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Fork the workers, behind the same fence."""
    if not is_real(config):
        os.environ["PYTHONPATH"] = FENCE
        prefork.fork_workers()


@pytest.fixture(scope="session", autouse=True)
def loopback_only_for_processes(pytestconfig: pytest.Config) -> Iterator[None]:
    """The same for Python processes that tests start: Python imports this sitecustomize itself."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_real(pytestconfig):
            patch.setenv("PYTHONPATH", FENCE)
            patch.setenv("SSL_CERT_DIR", FENCE)  # none: each client would read all, for 20 ms
        yield


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sandbox, so that tests do the same on every machine; tests of the sandbox turn it on."""
    monkeypatch.setenv("SANDBOX", "off")


@pytest.fixture
def talk(workspace: Path) -> Conversation:
    """A thread with the offline model, approvals manual, starting in ask."""
    return Conversation(make_agent(workspace))


@pytest.fixture
def place(tmp_path: Path) -> UserFolders:
    """A user's folders, empty."""
    return UserFolders(tmp_path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server; each test makes databases of its own in it."""
    programs = find_postgres()
    if programs is None:
        pytest.skip(WHY_NOT)
    with run_postgres(programs) as server:
        yield server
