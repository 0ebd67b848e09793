"""For what ``@pytest.mark.vcr`` marks: where its cassettes are, and no keys in them."""

from typing import Any

import pytest

from modeshift.project import find_root

_WITH_KEYS = ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "set-cookie"]


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """``cassettes/<test module>``."""
    return str(find_root() / "cassettes" / request.path.stem)


@pytest.fixture(scope="session")
def vcr_config() -> dict[str, Any]:
    """The options of vcrpy."""
    return {"filter_headers": _WITH_KEYS, "decode_compressed_response": True}
