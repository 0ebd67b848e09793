"""``observe``: reports what happens to metrics and traces: names and numbers, no content."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

Report = dict[str, str | int]
"""What is known at the end: tokens, or how a call ended."""
Listener = Callable[[str, Mapping[str, str], Report], AbstractContextManager[object]]
"""Gets the kind (``step``, ``model``, ``call``, ``refusal``), names, and the report to come."""
listeners: list[Listener] = []


@contextmanager
def observe(kind: str, **names: str) -> Iterator[Report]:
    """Report something that goes on during the block, which may add to the report of its end."""
    report: Report = {}
    with ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener(kind, names, report))
        yield report


def count(kind: str, **names: str) -> None:
    """Report something that has happened."""
    with observe(kind, **names):
        pass
