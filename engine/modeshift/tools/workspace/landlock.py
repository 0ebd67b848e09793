"""Starting a program that can read below some folders, and open nothing else.

The kernel's Landlock enforces it (Linux 5.13), whatever links the program follows. It needs no
privileges, works in most containers, and costs less than a millisecond.
"""

import ctypes
import os
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from modeshift.tools.workspace.opening import libc

T = TypeVar("T")
# One number for all architectures but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH, _NO_NEW_PRIVS = 1, 38
_EXECUTE, _READ_FILE, _READ_FOLDER, _ALL = 1, 4, 8, 0x1FFF


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def call_kernel(*arguments: object) -> int:
    """Make a system call, by its number; raises ``OSError``."""
    result = libc().syscall(*arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def confine(readable: Iterable[int], start: Callable[[], T]) -> T:
    """Call ``start`` in a thread that can read only ``readable``; its child processes inherit that.

    ``readable`` are open folders and files. Raises ``OSError``.
    """
    ruleset = _Ruleset(_ALL)
    rules = call_kernel(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    try:
        for descriptor in readable:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = _Rule(_READ_FILE | (_READ_FOLDER if is_folder else _EXECUTE), descriptor)
            call_kernel(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0)

        def start_confined() -> T:
            if libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
                raise OSError(ctypes.get_errno(), "no_new_privs")
            call_kernel(_RESTRICT_SELF, rules, 0)
            return start()

        # What binds a thread is never taken off it again: it ends here.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(start_confined).result()
    finally:
        os.close(rules)
