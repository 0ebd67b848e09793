"""Fixtures for the tests of a clone, whose ``pyproject.toml`` names this plugin.

``workspace`` is an empty folder. ``recorded`` plays the test's cassette, strictly. ``snapshot``
compares a text with a file. No test reaches another machine, or sees the keys of whoever runs it,
unless ``make record`` records a real provider. What is skipped is counted at the end, and is a
failure where ``CI`` is set.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vcr import VCR

from modeshift.testing import traffic
from modeshift.testing.cassette_format import configure
from modeshift.testing.loopback import block_network
from modeshift.testing.recording import PASSED, add_options, is_real, recorded
from modeshift.testing.snapshots import snapshot

__all__ = ["recorded", "snapshot"]
OF_PROVIDERS = re.compile(r"(?i)^(openai|anthropic|ollama|langsmith|langchain|azure|google)_")
OF_THE_NETWORK = re.compile(r"(?i)_proxy$|^ssl_cert_file$|^sslkeylogfile$")
OF_THE_USER = re.compile(r"(?i)_api_key$")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Those that ``make record`` sets."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Replace fixtures of pytest-recording, which is registered by now."""
    config.pluginmanager.register(traffic)
    config.addinivalue_line("markers", "snapshots: writes files of texts in make snapshots")
    config.addinivalue_line("markers", "recorded: has a cassette; what make record records anew")


def pytest_recording_configure(vcr: VCR) -> None:
    """For what ``@pytest.mark.vcr`` marks."""
    configure(vcr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ``make snapshots`` and ``make record`` run."""
    for item in items:
        for fixture, marker in (("snapshot", "snapshots"), ("recorded", "recorded")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Keep whether the test has passed, for the fixtures that end after it."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """At the very end: how many tests were skipped, and for want of what."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where CI has not what a test needs."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Tests reach this machine only, unless a real provider is recorded."""
    if not is_real(pytestconfig):
        block_network(monkeypatch.setattr)


@pytest.fixture(autouse=True)
def no_provider_of_the_user(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """Remove the user's keys, addresses and proxies from the environment.

    To record a real provider, keys and proxies are kept.
    """
    for name in list(os.environ):
        is_kept = is_real(pytestconfig) and (
            OF_THE_NETWORK.search(name) or OF_THE_USER.search(name)
        )
        if not is_kept and (OF_PROVIDERS.search(name) or OF_THE_NETWORK.search(name)):
            monkeypatch.delenv(name)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder
