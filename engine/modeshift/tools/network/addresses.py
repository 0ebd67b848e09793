"""Which addresses a fetch may connect to."""

import asyncio
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.urls import Url

GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")
# Public by their number only: protocol assignments with Oracle's metadata service, relays of
# 6to4, Azure's metadata service, documentation.
NOT_PUBLIC = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20"))
)


async def resolve(url: Url, allowed_hosts: Collection[str]) -> list[str]:
    """The addresses of the URL's host, each of them checked; raises ``ToolFailedError``.

    Whoever connects must use these: a name may resolve to something else the next time.
    """
    addresses = [url.host] if url.is_address else await _look_up(url)
    is_allowed = not allowed_hosts_of(url).isdisjoint(allowed_hosts)
    if not is_allowed and not all(is_public(ip_address(one)) for one in addresses):
        raise ToolFailedError(
            f"{url.host!r} is not on the public internet; only the user can allow it, "
            "with NETWORK_HOSTS"
        )
    return addresses


async def _look_up(url: Url) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(url.host, url.port, type=SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolFailedError(f"the host {url.host!r} cannot be found") from error
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def allowed_hosts_of(url: Url) -> set[str]:
    """What in NETWORK_HOSTS allows the URL: without a port the scheme's own is meant."""
    return {url.authority, f"{url.bracketed_host}:{url.port}"}


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is an address of the internet, and of no machine or network nearby."""
    if isinstance(address, IPv6Address):
        low = IPv4Address(int(address) & 0xFFFFFFFF)
        if address.ipv4_mapped is not None or address in NAT64:
            return is_public(low)
        if address not in GLOBAL_UNICAST or address.sixtofour or address.teredo:
            return False
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast
