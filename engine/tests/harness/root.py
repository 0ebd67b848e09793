"""Where the clone is whose tools and prompts the tests use, and the engine's folder in it."""

from pathlib import Path

ENGINE = Path(__file__).parents[2]
ROOT = ENGINE.parent
CONFIG = ("-c", str(ENGINE / "pyproject.toml"))
"""For pytest: of the clone's tests alone it would take the clone's, which can only play."""
