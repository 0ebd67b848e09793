"""Fixtures for the tests of a clone, whose ``pyproject.toml`` names this plugin.

``workspace`` is an empty folder. ``recorded`` plays the test's cassette, strictly. ``snapshot``
compares a text with a file. No test reaches another machine, or sees the keys of whoever runs it,
unless ``make record`` records a real provider. What is skipped is counted at the end; where ``CI``
is set and the machine lacks what a test needs, that is a failure.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

import pytest

from modeshift.project import find_root
from modeshift.testing import traffic
from modeshift.testing.cassette_format import configure as pytest_recording_configure
from modeshift.testing.loopback import block_network
from modeshift.testing.recording import PASSED, is_real, recorded
from modeshift.testing.recording import add_options as pytest_addoption

__all__ = ["pytest_addoption", "pytest_recording_configure", "recorded", "snapshot"]
OF_PROVIDERS = re.compile(r"(?i)^(openai|anthropic|ollama|langsmith|langchain|azure|google)_")
OF_THE_NETWORK = re.compile(r"(?i)_proxy$|^ssl_cert_file$|^sslkeylogfile$")
MISSING = re.compile(r"not installed|no \.venv|cannot be had|no such program|no Chromium")
"""How a test says that the machine lacks what it needs; other reasons to skip are fine."""
OF_THE_USER = re.compile(r"(?i)_api_key$")


def pytest_configure(config: pytest.Config) -> None:
    """Replace fixtures of pytest-recording, which is registered by now."""
    config.pluginmanager.register(traffic)
    config.addinivalue_line("markers", "snapshots: writes files of texts in make snapshots")
    config.addinivalue_line("markers", "recorded: has a cassette; what make record records anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ``make snapshots`` and ``make record`` run."""
    for item in items:
        for fixture, marker in (("snapshot", "snapshots"), ("recorded", "recorded")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether the test has passed, for the fixtures that end after it."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Print at the very end how many tests were skipped, and what they lacked."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(map(_say_why, skipped))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if CI lacks what a test needs."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if os.environ.get("CI") and any(MISSING.search(_say_why(each)) for each in skipped):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _say_why(skipped: pytest.TestReport) -> str:
    assert isinstance(skipped.longrepr, tuple)
    return skipped.longrepr[2].removeprefix("Skipped: ")


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


Snapshot = Callable[[str, str | Mapping[str, str]], None]
CHANGING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "ID",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+\d\d:\d\d)?": "TIME",
    r"\b\d+\.\d s\b": "N s",
}


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Fails unless ``tests/snapshots`` has the text, or texts by heading, in a file of that name.

    With ``WRITE=1``, as `make snapshots` sets it, the file is written.
    """
    tests = next(folder for folder in request.path.parents if folder.name == "tests")
    paths = {str(tmp_path): "/somewhere", str(find_root()): "/clone", str(tests.parent): "/clone"}

    def compare(name: str, texts: str | Mapping[str, str]) -> None:
        if not isinstance(texts, str):
            named = ((repr(heading)[1:-1], text.rstrip()) for heading, text in texts.items())
            texts = "\n".join(f"==== {heading}\n{text}\n" for heading, text in named)
        for path, shown in {sys.executable: "python", **paths}.items():
            texts = texts.replace(path, shown)
        for pattern, shown in CHANGING.items():
            texts = re.sub(pattern, shown, texts)
        file = tests / "snapshots" / name
        if os.environ.get("WRITE") == "1":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(texts.encode())
        if not file.exists():
            pytest.fail(f"{file} is missing; `make snapshots` writes it", pytrace=False)
        known = file.read_bytes().decode()
        if known != texts:
            lines = unified_diff(
                known.splitlines(), texts.splitlines(), "known", "now", lineterm=""
            )
            diff = "\n".join(lines)
            pytest.fail(f"{file} has changed; is it meant? `make snapshots`\n{diff}", pytrace=False)

    return compare
