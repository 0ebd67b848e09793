"""``block_network``: no connection to another machine, and no look-up of its name."""

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

LOCAL_NAMES = ("localhost", "", None)


def block_network(patch: Callable[[object, str, Any], None]) -> None:
    """Allow connections and look-ups only for this machine; ``patch`` is used like ``setattr``."""
    connect, connect_ex, sendto = (
        getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")
    )
    getaddrinfo = socket.getaddrinfo

    def checked(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert is_loopback(address[0]), f"a test wants to reach {address}"

    def checked_connect(self: socket.socket, address: object) -> None:
        checked(self, address)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: object) -> Any:
        checked(self, address)
        return connect_ex(self, address)

    def checked_sendto(self: socket.socket, data: object, *rest: object) -> Any:
        checked(self, rest[-1])
        return sendto(self, data, *rest)

    def checked_getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        assert is_loopback(host), f"a test wants to know where {host!r} is"
        return getaddrinfo(host, *rest, **options)

    patch(socket.socket, "connect", checked_connect)
    patch(socket.socket, "connect_ex", checked_connect_ex)
    patch(socket.socket, "sendto", checked_sendto)
    patch(socket, "getaddrinfo", checked_getaddrinfo)


def is_loopback(host: str | bytes | None) -> bool:
    """Whether ``host`` is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name in LOCAL_NAMES or ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False
