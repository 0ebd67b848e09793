"""Where the clone is whose tools and prompts the tests use, and the engine's folder in it."""

from pathlib import Path

ENGINE = Path(__file__).parents[2]
ROOT = ENGINE.parent
