"""What another thread does again and again, as fast as it can, while the code under test runs."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


@contextmanager
def repeating(action: Callable[[], object]) -> Iterator[None]:
    """Call ``action`` until the block ends."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def swapping(*pairs: tuple[Path, Path]) -> AbstractContextManager[None]:
    """Exchange the two of each pair; on Linux only."""
    exchange = ctypes.CDLL(None).renameat2
    paths = [(os.fsencode(path), os.fsencode(other)) for path, other in pairs]

    def swap() -> None:
        for path, other in paths:
            exchange(-100, path, -100, other, 2)

    return repeating(swap)
