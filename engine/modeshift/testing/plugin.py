"""Fixtures for the tests of a clone, whose ``pyproject.toml`` names this plugin.

``workspace`` is an empty folder. ``recorded`` plays the test's cassette, strictly. ``snapshot``
compares a text with a file. No test reaches another machine, or sees the keys of whoever runs it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from vcr import VCR
from vcr.request import Request

from modeshift.project import find_root
from modeshift.testing import traffic
from modeshift.testing.agent import Conversation, Recorded, make_agent
from modeshift.testing.loopback import block_network
from modeshift.testing.snapshots import snapshot
from modeshift.testing.strict_replay import StrictReplay, body

__all__ = ["snapshot"]
MODEL = "anthropic:claude-sonnet-5-5"
OF_PROVIDERS = re.compile(r"(?i)^(openai|anthropic|ollama|langsmith|langchain|azure|google)_")
OF_THE_NETWORK = re.compile(r"(?i)_proxy$|^ssl_cert_file$|^sslkeylogfile$")


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach this machine only."""
    block_network(monkeypatch.setattr)


@pytest.fixture(autouse=True)
def no_provider_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the user's keys, addresses and proxies from the environment."""
    for name in list(os.environ):
        if OF_PROVIDERS.search(name) or OF_THE_NETWORK.search(name):
            monkeypatch.delenv(name)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def pytest_configure(config: pytest.Config) -> None:
    """Replace fixtures of pytest-recording, which is registered by now."""
    config.pluginmanager.register(traffic)


def name_cassette(item: Any) -> str:
    """The name of a test's cassette without its ending: no brackets, which a shell would expand."""
    marker = item.get_closest_marker("default_cassette")
    name = marker.args[0] if marker else item.name
    return str(name).replace("[", "-").replace("]", "")


@pytest.fixture
def recorded(request: pytest.FixtureRequest, tmp_path: Path, workspace: Path) -> Iterator[Recorded]:
    """To be called once: the thread, whose model answers as ``cassettes/<module>/<test>.yaml``."""
    path = find_root() / "cassettes" / request.path.stem / f"{name_cassette(request.node)}.yaml"
    if not path.exists():
        name = request.node.name.partition("[")[0]
        pytest.fail(f"{path} is missing; record it: make record T={name}", pytrace=False)

    def clean(sent: Request) -> Request:
        sent.body = (sent.body_bytes or b"").replace(str(tmp_path).encode(), b"/somewhere")
        return sent

    vcr = VCR(record_mode="none")
    vcr.register_matcher("body", body)
    with vcr.use_cassette(
        str(path),
        match_on=["method", "uri", "body"],
        before_record_request=clean,
        filter_post_data_parameters=["prompt_cache_key"],  # it names the thread
    ) as cassette:
        replay = StrictReplay(cassette)
        yield lambda *steps, **options: open_thread(workspace, steps, **options)
    if replay.refused:
        pytest.fail(replay.refused[0], pytrace=False)
    if replay.unplayed:
        numbers = ", ".join(str(number + 1) for number in replay.unplayed)
        pytest.fail(f"{path}: not played: {numbers} of {len(cassette)}", pytrace=False)


def open_thread(
    workspace: Path,
    _: Sequence[Any],
    *,
    model: str = MODEL,
    is_streamed: bool = True,
    **options: Any,
) -> Conversation:
    """A thread of the clone's agent; ``options`` are those of ``make_agent``."""
    return Conversation(make_agent(workspace, model, **options), is_streamed=is_streamed)
