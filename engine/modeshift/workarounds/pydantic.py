"""``leaving_out_docstrings`` for ``pydantic``; seen with 2.14.3."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic._internal import _fields

EXTRACT = "extract_docstrings_from_cls"


@contextmanager
def leaving_out_docstrings() -> Iterator[None]:
    """Have models that are defined meanwhile read no description of a field from their source.

    A third of the ACP SDK's import is that. No issue asks for it yet: "schema.py: Field(...)".
    """
    names = vars(_fields)
    extract = names.get(EXTRACT)  # another version may have none
    names[EXTRACT] = lambda *_, **__: {}
    try:
        yield
    finally:
        names[EXTRACT] = extract
