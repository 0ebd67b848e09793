"""The clone that has the engine as a wheel: begun and set up once for all tests."""

import subprocess
from pathlib import Path

import pytest
from test_wheel import FirstStart, make, start


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process waits for them at the end."""
    items.sort(key=lambda item: "test_recipes_stay_green" not in item.nodeid)


@pytest.fixture(scope="session")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> FirstStart:
    folder = tmp_path_factory.mktemp("wheel") / "shop"
    assert f"{folder}: shop, on modeshift-" in start(folder)
    make(folder, "venv")
    (packages,) = (folder / ".venv/lib").glob("python*/site-packages")
    size = subprocess.run(["du", "-sm", packages], capture_output=True, check=True, text=True)
    installed = [name.name for name in packages.glob("*.dist-info")]
    return FirstStart(folder, installed, int(size.stdout.split()[0]))


@pytest.fixture(scope="session")
def clone(first_start: FirstStart) -> Path:
    return first_start.clone
