"""``observe``: tells metrics and traces what happens: names and numbers, no content."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

Report = dict[str, str | int]
"""What is known at the end: tokens, or how a call ended."""
Listener = Callable[[str, Mapping[str, str], Report], AbstractContextManager[object]]
"""Gets the kind (``step``, ``model``, ``call``, ``refusal``), its names, and what will be told."""
listeners: list[Listener] = []


@contextmanager
def observe(kind: str, **names: str) -> Iterator[Report]:
    """Something of this kind goes on during the block, which may add to what is told at its end."""
    report: Report = {}
    with ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener(kind, names, report))
        yield report


def count(kind: str, **names: str) -> None:
    """Something of this kind has happened."""
    with observe(kind, **names):
        pass
