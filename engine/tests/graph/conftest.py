"""A provider in the place of the real ones, and a workspace with a file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.graph.models.model_thread import use
from tests.provider.script import Driver, Step
from tests.provider.server import KEY, ScriptedProvider, serving

Serve = Callable[..., AbstractContextManager[ScriptedProvider]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serve a script to the client called ``name``; the real service would take each request.

    ``key`` is the client's; in the end nothing of the script may be left.
    """

    @contextmanager
    def serve(
        script: Sequence[Step] | Driver, name: str = "chat", key: str = KEY, **options: Any
    ) -> Iterator[ScriptedProvider]:
        with serving(script, **options) as provider:
            use(provider, monkeypatch, name, key)
            yield provider
        assert (provider.refused, provider.dropped, provider.steps_left) == ([], [], 0)

    return serve


@pytest.fixture
def there(workspace: Path) -> Path:
    """A workspace with ``there.txt``."""
    (workspace / "there.txt").write_text("old")
    return workspace
