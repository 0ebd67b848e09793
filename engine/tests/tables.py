"""``rows`` and ``cases``: a test's table, one row a line."""

from collections.abc import Mapping
from typing import Any

import pytest


def rows(names: str, *table: Any, ids: Any = None) -> pytest.MarkDecorator:
    """Run a test with each row of ``table``; ``names`` are the columns', with blanks between."""
    columns = names.split()
    return pytest.mark.parametrize(columns[0] if len(columns) == 1 else columns, table, ids=ids)


def cases(names: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """The same, with a name for each row."""
    return rows(names, *table.values(), ids=[*table])
