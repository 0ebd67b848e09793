"""Fixtures and hooks of the engine's tests, whose clone is the template."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from modeshift.project import use_root
from modeshift.testing.cassette_format import configure
from modeshift.testing.loopback import block_network
from modeshift.testing.plugin import (
    OF_PROVIDERS,
    OF_THE_NETWORK,
    pytest_sessionfinish,
    pytest_terminal_summary,
    snapshot,
    workspace,
)
from modeshift.testing.recording import PASSED, add_options, is_real, recorded
from tests.harness import prefork, recording
from tests.harness.conversation import Conversation, make_agent
from tests.harness.place import UserFolders
from tests.harness.postgres import WHY_NOT, Postgres, find_postgres, run_postgres
from tests.harness.recording import (
    KEYS,
    TAPE,
    begin,
    is_streamed,
    provider,
    start_tape,
)
from tests.harness.root import TEMPLATE

__all__ = [
    "begin",
    "is_streamed",
    "provider",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "recorded",
    "snapshot",
    "start_tape",
    "workspace",
]
FENCE = str(Path(__file__).parent / "fence")
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)
    group = parser.getgroup("cassettes")
    group.addoption(
        "--real",
        action="append",
        default=[],
        choices=[*KEYS, "other"],
        help="a provider to record the real service of, which costs money; other: anything else",
    )


def reaches_others(config: pytest.Config) -> bool:
    """Whether anything else is recorded than a scripted provider."""
    return bool(config.getoption("--real")) or is_real(config)


def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    configure(vcr)


PLAYED = ("openai-streamed", "chat-whole", "anthropic-streamed")
"""Of the recordings, those that are not left to ``make check``."""


def pytest_configure(config: pytest.Config) -> None:
    use_root(TEMPLATE)
    config.pluginmanager.register(recording)  # behind pytest-recording, whose fixtures it replaces
    config.addinivalue_line("markers", "recorded: has a cassette; what make record records anew")
    config.addinivalue_line("markers", "snapshots: writes files of texts in make snapshots")
    config.addinivalue_line("markers", "conversation: has a tape; what make record records anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "recorded" in getattr(item, "fixturenames", ()):
            item.add_marker("recorded")
        if "snapshot" in getattr(item, "fixturenames", ()):
            item.add_marker("snapshots")
        if "start_tape" in getattr(item, "fixturenames", ()):
            item.add_marker("vcr")
            item.add_marker("conversation")
            is_played = any(combination in item.name for combination in PLAYED)
            if not is_played:
                item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Fork the workers, behind the same fence."""
    if not reaches_others(config):
        os.environ["PYTHONPATH"] = FENCE
        prefork.fork_workers()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        tape = item.stash.get(TAPE, None)
        if tape is not None and tape.replay is not None and tape.replay.refused:
            # This is the cause, whatever the test made of it.
            report.outcome = "failed"
            report.longrepr = tape.replay.refused[0]
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture(scope="session", autouse=True)
def loopback_only_for_processes(pytestconfig: pytest.Config) -> Iterator[None]:
    """The same for Python processes that tests start: Python imports this sitecustomize itself."""
    with pytest.MonkeyPatch.context() as patch:
        if not reaches_others(pytestconfig):
            patch.setenv("PYTHONPATH", FENCE)
            patch.setenv("SSL_CERT_DIR", FENCE)  # none: each client would read all, for 20 ms
        yield


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Tests reach this machine only, unless a real provider is recorded."""
    if reaches_others(pytestconfig):
        return
    block_network(monkeypatch.setattr)


@pytest.fixture(autouse=True)
def no_provider_of_the_user(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Remove the user's keys, addresses and proxies from the environment.

    To record a real provider, its key and the proxies are kept.
    """
    kept = {KEYS.get(name) for name in pytestconfig.getoption("--real")}
    if is_real(pytestconfig):
        kept |= {*KEYS.values()}
    for name in list(os.environ):
        is_a_way = not reaches_others(pytestconfig) and OF_THE_NETWORK.search(name)
        if (OF_PROVIDERS.search(name) and name not in kept) or is_a_way:
            monkeypatch.delenv(name)


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
