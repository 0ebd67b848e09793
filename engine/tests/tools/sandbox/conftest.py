"""What the tests of the sandbox share."""

from pathlib import Path

import pytest

from tests.tools.sandbox.commands import Run, runner


@pytest.fixture
def run(workspace: Path) -> Run:
    return runner(workspace)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of somebody else's beside the workspace."""
    file = tmp_path / "outside" / "file"
    file.parent.mkdir()
    file.write_text("mine")
    return file
