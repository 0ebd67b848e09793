"""``vcr_config`` for ``@pytest.mark.vcr``: where cassettes are, and no keys in them."""

from pathlib import Path

import pytest

from modeshift.modes.plain_data import JsonObject
from modeshift.project import find_root
from modeshift.testing.cassette_format import get_config


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """``cassettes/<test module>``."""
    return str(find_root() / "cassettes" / request.path.stem)


@pytest.fixture
def vcr_config(
    tmp_path: Path, record_mode: str, vcr_cassette_dir: str, default_cassette_name: str
) -> JsonObject:
    """The options of vcrpy."""
    path = Path(vcr_cassette_dir) / f"{default_cassette_name}.yaml"
    return get_config(((str(tmp_path), "/somewhere"),), record_mode, path)
