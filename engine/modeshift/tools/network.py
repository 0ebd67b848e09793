"""``fetch``: a page from an address that has been checked."""

import asyncio
import re
from collections.abc import Collection
from contextvars import ContextVar
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from socket import SOCK_STREAM
from urllib.parse import urljoin

import httpx

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.urls import Url, parse_url

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
    # An entry without a port means the scheme's.
    is_allowed = not {url.authority, f"{url.bracketed_host}:{url.port}"}.isdisjoint(allowed_hosts)
    if not is_allowed and not all(is_public(ip_address(address)) for address in addresses):
        raise ToolFailedError(
            f"{url.host!r} is not on the public internet; only the user can allow it, "
            "with NETWORK_HOSTS"
        )
    return addresses


async def _look_up(url: Url) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(url.host, url.port, type=SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolFailedError(f"the host {url.host!r} cannot be found") from error
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is on the internet, and not of this machine or a network nearby."""
    if isinstance(address, IPv6Address):
        low = IPv4Address(int(address) & 0xFFFFFFFF)
        if address.ipv4_mapped is not None or address in NAT64:
            return is_public(low)
        if address not in GLOBAL_UNICAST or address.sixtofour or address.teredo:
            return False
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast


SECONDS = 30
MAX_BYTES = 1_000_000
_TEXT = re.compile(r"text/.*|application/(.*\+)?(json|xml|javascript|yaml)", re.IGNORECASE)
_CHARSETS = re.compile(
    r"utf-8|us-ascii|iso-8859-\d+|windows-125\d|koi8-r|gb18030|gbk|gb2312|big5|shift_jis|euc-(jp|kr)",
    re.IGNORECASE,
)
_HEADERS = {
    "User-Agent": "modeshift",
    "Accept": "text/*, application/json;q=0.9, application/xml;q=0.8",
    "Accept-Encoding": "identity",  # what is compressed has no bounded size
}

idempotency_key: ContextVar[str | None] = ContextVar("idempotency_key", default=None)
"""The key of the call that a tool runs for; the same call has the same key after a crash."""


def get_idempotency_key() -> str | None:
    """What to send with a request, as its ``Idempotency-Key``; None where nothing is changed.

    It is the call's: the same if it ever comes again, after a crash say.
    """
    return idempotency_key.get()


async def fetch(url: str, allowed_hosts: Collection[str] = ()) -> str:
    """The text at ``url``; of a redirect, where it leads: that is another call, judged by itself.

    ``allowed_hosts`` are those that may be reached though they are not public, as ``host`` or
    ``host:port``. Takes no proxy and no cookies. Raises ``ToolFailedError``.
    """
    try:
        target = parse_url(url)
    except ValueError as error:
        raise ToolFailedError(f"{url!r} cannot be fetched: {error}") from error
    try:
        async with asyncio.timeout(SECONDS):
            return await _get_any(target, await resolve(target, allowed_hosts))
    except TimeoutError as error:
        raise ToolFailedError(f"{target} took longer than {SECONDS} s") from error
    except httpx.HTTPError as error:
        raise ToolFailedError(f"{target} did not answer: {type(error).__name__}") from error


async def _get_any(url: Url, addresses: list[str]) -> str:
    """The answer of the first address that can be connected to."""
    for address in addresses[:-1]:
        try:
            return await _get(url, address)
        except httpx.ConnectError:
            continue
    return await _get(url, addresses[-1])


_make_ssl_context = cache(httpx.create_ssl_context)


async def _get(url: Url, address: str) -> str:
    # To the address itself, so that nothing resolves the name again; the server sees the name.
    there = httpx.URL(scheme=url.scheme, host=address, port=url.port, raw_path=url.target.encode())
    named = {"Idempotency-Key": key} if (key := get_idempotency_key()) else {}
    request = httpx.Request(
        "GET",
        there,
        headers={**_HEADERS, **named, "Host": url.authority},
        extensions={"sni_hostname": url.host, "timeout": httpx.Timeout(SECONDS).as_dict()},
    )
    verify = await asyncio.to_thread(_make_ssl_context)
    async with httpx.AsyncClient(trust_env=False, verify=verify) as client:
        response = await client.send(request, stream=True)
        try:
            return await _read(url, response)
        finally:
            await response.aclose()


async def _read(url: Url, response: httpx.Response) -> str:
    """The text of an answer; raises ``ToolFailedError`` with no word of the server's in it."""
    if response.has_redirect_location:
        try:
            target = parse_url(urljoin(str(url), response.headers["Location"]))
        except ValueError:
            raise ToolFailedError(f"{url} redirects to what cannot be fetched") from None
        return f"{url} redirects to {target}; fetch that if it is what you want."
    if not response.is_success:
        raise ToolFailedError(f"{url} answered with the status {response.status_code}")
    kind, _, _ = response.headers.get("Content-Type", "").partition(";")
    if not _TEXT.fullmatch(kind.strip()) or "Content-Encoding" in response.headers:
        raise ToolFailedError(f"{url} did not answer with plain text")
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > MAX_BYTES:
            break
    charset = response.charset_encoding or ""
    text = data[:MAX_BYTES].decode(charset if _CHARSETS.fullmatch(charset) else "utf-8", "replace")
    return text if len(data) <= MAX_BYTES else f"{text}\n[only the first {MAX_BYTES} bytes]"
