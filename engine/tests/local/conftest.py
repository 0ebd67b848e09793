"""The server of llama.cpp for a test, and the mark of all tests that need it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.local.llama import Llama, is_installed, running

StartLlama = Callable[..., Llama]
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker("local")


@pytest.fixture
def start_llama() -> Iterator[StartLlama]:
    """``running``, until the test ends."""
    if not is_installed():
        pytest.skip("llama.cpp is not installed here (make local-models installs it)")
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(running(*args, **options))
