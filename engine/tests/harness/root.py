"""Where the engine is, and the small clone in it that the tests use."""

from pathlib import Path

ENGINE = Path(__file__).parents[2]
TEMPLATE = ENGINE / "template"
