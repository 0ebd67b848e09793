"""``block_network``: no connection to another machine, and no look-up of its name."""

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

LOCAL_NAMES = ("localhost", "", None)


def block_network(patch: Callable[[object, str, object], None]) -> None:
    """Allow connections and look-ups only for this machine; ``patch`` is used like ``setattr``."""
    for name in ("connect", "connect_ex", "sendto"):
        patch(socket.socket, name, _check_address(getattr(socket.socket, name)))
    getaddrinfo = socket.getaddrinfo

    def checked_getaddrinfo(host: Any, *rest: Any, **options: Any) -> object:
        assert is_loopback(host), f"a test wants to know where {host!r} is"
        return getaddrinfo(host, *rest, **options)

    patch(socket, "getaddrinfo", checked_getaddrinfo)


def _check_address(call: Callable[..., object]) -> Callable[..., object]:
    """The method of a socket, whose last argument is the address."""

    def checked(self: socket.socket, *args: Any) -> object:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert is_loopback(args[-1][0]), f"a test wants to reach {args[-1]}"
        return call(self, *args)

    return checked


def is_loopback(host: str | bytes | None) -> bool:
    """Whether ``host`` is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name in LOCAL_NAMES or ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False
