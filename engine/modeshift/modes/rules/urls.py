"""URLs of network tools: one spelling for each, and the patterns that rules have for them.

A pattern is a URL, or one that ends in ``/*``: that folder and all below it, with any query.
Scheme, host and port are compared as a whole, so ``https://docs.python.org/*`` is neither for
``http://docs.python.org/`` nor for ``https://docs.python.org.evil.com/``.
"""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from pydantic_core import Url as ParsedUrl
from pydantic_core import ValidationError

MAX_CHARACTERS = 2000
PORTS = {"http": 80, "https": 443}
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_URL = re.compile(
    rf"(?P<origin>https?://(?P<host>{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9a-f:.]+\])(?::[1-9][0-9]*)?)"
    r"(?P<target>(?:[/?][^#]*)?)(?:#.*)?",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What some servers read as a slash, decode a second time, cut off or leave out (control characters,
# a dot or blank at a name's end, UTF-8 that is none): where such a path leads is unsure.
_UNSURE = re.compile(r"%2f|%5c|%25|//|;|%[01].|%7f|%c[01]|(\.|%20)(/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL of the web, in its one spelling."""

    scheme: str
    host: str
    """The host in small letters; an IPv6 address without its brackets."""
    port: int
    path: str
    query: str

    @property
    def is_address(self) -> bool:
        """Whether the host is an IP address and no name."""
        return ":" in self.host or self.host.replace(".", "").isdecimal()

    @property
    def bracketed_host(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """The host, and the port where it is not the scheme's own."""
        is_default = self.port == PORTS[self.scheme]
        return self.bracketed_host if is_default else f"{self.bracketed_host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme and authority."""
        return f"{self.scheme}://{self.authority}"

    @property
    def target(self) -> str:
        """Path and query, which a request asks for."""
        return f"{self.path}{self.query}"

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


def parse_url(text: str) -> Url:
    """Read a URL as it will be fetched; raises ``ValueError`` that says what is wrong.

    Refuses what clients and servers read in different ways: user names, backslashes, blanks,
    hosts that are not ASCII, and numbers that stand for an address.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a URL of {len(text)} characters; {MAX_CHARACTERS} are the limit")
    if not text.isprintable() or any(c in text for c in " \\"):
        raise ValueError("the URL has a blank, a backslash or a control character")
    parts = _URL.fullmatch(text)
    if parts is None:
        raise ValueError(
            "the URL is not https://host/path, or with http:// or a port; it may have no user name "
            "('@' before its path), and its host is a name in ASCII (xn--...) or an IP address"
        )
    try:
        url = ParsedUrl(f"{parts['origin']}{_escape(parts['target'])}")
    except ValidationError as error:
        raise ValueError(f"the URL cannot be read: {error.errors()[0]['msg']}") from error
    host = (url.host or "").removesuffix(".")
    if not host.startswith("[") and host != parts["host"].lower().removesuffix("."):
        raise ValueError(f"the URL's host {parts['host']!r} stands for {host!r}; write that")
    query = f"?{url.query}" if url.query else ""
    return Url(url.scheme, host.strip("[]"), url.port or 0, url.path or "/", query)


def parse_authority(text: str) -> str:
    """``host`` or ``host:port`` in its one spelling; raises ``ValueError``."""
    url = parse_url(f"http://{text}")
    if set(text) & set("/?#"):
        raise ValueError(f"{text!r} is not of the form host or host:port")
    # A port that is named is meant, under https too.
    return f"{url.bracketed_host}:{url.port}" if re.search(r":\d+$", text) else url.authority


def _escape(text: str) -> str:
    """Percent-encoding in one spelling: only where it is needed, in capitals."""

    def decode(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError("the URL has a '%' that begins no escape such as %20")
    return quote(_ESCAPE.sub(decode, text), safe="%/:?#[]@!$&'()*+,;=~")


def check_url_pattern(pattern: str) -> None:
    """Raise ``ValueError`` for a pattern that is no URL, or has ``*`` elsewhere than at its end."""
    base = pattern.removesuffix("*")
    if "*" in base or (base != pattern and ("?" in base or not base.endswith("/"))):
        raise ValueError(
            f"the pattern {pattern!r} may have one '*', at its end and after a slash of the path: "
            "'https://docs.python.org/*'"
        )
    try:
        if str(parse_url(base)) != base:
            raise ValueError(f"write it as {parse_url(base)}{pattern[len(base) :]}")
    except ValueError as error:
        raise ValueError(f"the pattern {pattern!r} can match no URL: {error}") from error


def url_certainly_matches(pattern: str, url: Url) -> bool:
    """Whether an ``allow`` for the pattern is one for the URL: in doubt it is not."""
    base = parse_url(pattern.removesuffix("*"))
    if url.origin != base.origin:
        return False
    if not pattern.endswith("*"):
        return url == base
    if base.path == "/":
        return True
    return url.path.startswith(base.path) and not _UNSURE.search(url.path)


def url_may_match(pattern: str, url: Url) -> Literal["yes", "no", "maybe"]:
    """Whether an ``ask`` or a ``deny`` for the pattern is one for the URL.

    On another scheme or port, or where the path is not certain, it may be.
    """
    base = parse_url(pattern.removesuffix("*"))
    if url.host != base.host:
        return "no"
    base_path, path = _fold(base.path), _fold(url.path)
    is_below = path.startswith(base_path) if pattern.endswith("*") else path == base_path
    if is_below and url.origin == base.origin:
        return "yes"
    return "maybe" if is_below or _UNSURE.search(url.path) else "no"


def _fold(path: str) -> str:
    return re.sub("/+", "/", unquote(path)).casefold()
