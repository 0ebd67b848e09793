"""``planted``: a fault in the engine while a block runs, to see that something finds it."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from textwrap import dedent
from types import FunctionType
from typing import Any


def find_function(place: str) -> FunctionType:
    module, _, name = place.partition(":")
    function: Any = import_module(f"modeshift.{module}")
    for part in name.split("."):
        function = inspect.getattr_static(function, part)
    found = getattr(function, "func", function)  # of a cached property
    assert isinstance(found, FunctionType)
    return found


@contextmanager
def planted(fault: Mapping[str, Any]) -> Iterator[None]:
    """The function's code is another one, wherever it is called from."""
    if "in" not in fault:
        yield
        return
    function = find_function(fault["in"])
    source = dedent(inspect.getsource(function))
    assert source.count(fault["old"]) == 1, f"{fault['in']} has no such line any more"
    space = {**function.__globals__, "cached_property": lambda inner: inner}
    exec(source.replace(fault["old"], fault["new"]), space)  # noqa: S102  # the engine's own source
    code, function.__code__ = function.__code__, space[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = code
