"""Fixtures that stand before those of pytest-recording; the rest is in ``tests.harness.plugin``."""

from tests.harness.recording import default_cassette_name, vcr_cassette_dir, vcr_config

__all__ = ["default_cassette_name", "vcr_cassette_dir", "vcr_config"]
