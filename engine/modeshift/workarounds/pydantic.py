"""``leaving_out_docstrings`` for ``pydantic``; seen with 2.14.3."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic._internal import _fields


@contextmanager
def leaving_out_docstrings() -> Iterator[None]:
    """Have the models that are defined meanwhile take no descriptions of fields from their source.

    The ACP SDK asks for them in each of 280 models, a third of what its import takes; nobody reads
    them. No issue asks for it yet: "schema.py should have its descriptions as Field(description=)".
    """
    extract = _fields.extract_docstrings_from_cls
    _fields.extract_docstrings_from_cls = lambda *_, **__: {}
    try:
        yield
    finally:
        _fields.extract_docstrings_from_cls = extract
