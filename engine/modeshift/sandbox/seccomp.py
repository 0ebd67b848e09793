"""A seccomp filter: it refuses system calls that no command needs, and an attack does.

Such are user namespaces inside the sandbox, the kernel's keyrings (which hold tickets and keys of
the user's session), sockets that lead to other programs without a network, and memory that nobody
counts.
"""

import errno
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
"""Offsets in the kernel's ``struct seccomp_data``; of the first argument the low half."""
_NEW_USER, _NEW_THREAD = 0x10000000, 0x00010000
_AF_UNIX, _AF_VSOCK = 1, 40
_X32 = 0x40000000


@dataclass(frozen=True)
class _Machine:
    """The numbers of system calls, from the kernel's tables."""

    audit: int
    clone: int
    forks: tuple[int, ...]
    """fork, vfork, where the machine has them beside clone."""
    unshare: int
    socket: int
    forbidden: tuple[int, ...]
    """setns, add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, memfd_create,
    shmget, msgget."""


_X86_64 = (308, 248, 249, 250, 298, 321, 323, 319, 29, 68)
_AARCH64 = (268, 217, 218, 219, 241, 280, 282, 279, 194, 186)
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 56, (57, 58), 272, 41, _X86_64),
    "aarch64": _Machine(0xC00000B7, 220, (), 97, 198, _AARCH64),
}
_CLONE3 = 435
_IO_URING = (425, 426, 427)
"""The same numbers on every architecture."""


def has_filter() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in _MACHINES


@cache
def build_filter(*, has_sockets: bool, has_children: bool) -> bytes:
    """The filter for this machine.

    ``has_sockets``: with those in the file system, which lead to other programs.
    ``has_children``: with other processes than the one that is started; threads it always has.
    """
    return b"".join(_program(has_sockets=has_sockets, has_children=has_children))


def _program(*, has_sockets: bool, has_children: bool) -> Iterator[bytes]:
    """Instructions; a jump is over as many of them as it says."""
    machine = _MACHINES[platform.machine()]
    yield _instruction(_LOAD, _ARCHITECTURE)
    yield _instruction(_EQUAL, machine.audit, 1, 0)
    yield _refuse(errno.EPERM)
    yield _instruction(_LOAD, _NUMBER)
    yield _instruction(_AT_LEAST, _X32, 0, 1)  # another set of numbers, on x86
    yield _refuse(errno.ENOSYS)
    for number in (*machine.forbidden, *_IO_URING, *(() if has_children else machine.forks)):
        yield _instruction(_EQUAL, number, 0, 1)
        yield _refuse(errno.EPERM)
    # Its flags are in memory, where a filter cannot look: libraries fall back to clone.
    yield _instruction(_EQUAL, _CLONE3, 0, 1)
    yield _refuse(errno.ENOSYS)
    checked = [  # a call, a test of its first argument, and with which outcome it is refused
        (machine.clone, _ANY_BIT, _NEW_USER, True),
        (machine.unshare, _ANY_BIT, _NEW_USER, True),
        (machine.socket, _EQUAL, _AF_VSOCK, True),
    ]
    if not has_sockets:
        checked.append((machine.socket, _EQUAL, _AF_UNIX, True))
    if not has_children:
        checked.append((machine.clone, _ANY_BIT, _NEW_THREAD, False))
    for number, test, value, refused in checked:
        yield _instruction(_EQUAL, number, 0, 4)
        yield _instruction(_LOAD, _ARGUMENT)
        yield _instruction(test, value, int(not refused), int(refused))
        yield _refuse(errno.EPERM)
        yield _instruction(_LOAD, _NUMBER)
    yield _instruction(_RETURN, _ALLOW)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERROR | error)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
