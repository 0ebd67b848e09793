"""URLs as rules see them: one spelling, and patterns that nothing gets around."""

import pytest

from modeshift.modes.effects import EFFECTS, ToolSpec
from modeshift.modes.mode import Mode, SourcedPermissions
from modeshift.modes.policy import Approvals, verdict
from modeshift.modes.rules.matching import Subject, check_pattern
from modeshift.modes.rules.permissions import Kind
from modeshift.modes.rules.urls import parse_authority, parse_url

FETCH = ToolSpec("fetch_url", EFFECTS["network"], "web", url="url")
DOCS = "https://docs.python.org/*"


def mode(permissions: dict[str, Kind], denied: str | None = None) -> Mode:
    denials = (SourcedPermissions({"fetch_url": {denied: "deny"}}, "mine"),) if denied else ()
    definition = {"slug": "a", "name": "A", "roleDefinition": "x", "groups": ["web"]}
    return Mode.model_validate(
        definition | {"permissions": {"fetch_url": permissions}, "denials": denials}
    )


@pytest.mark.parametrize(
    ("url", "is_read_as"),
    [
        ("https://docs.python.org", "https://docs.python.org/"),
        ("HTTPS://DOCS.Python.ORG:443/A?b=c d".replace(" ", "%20"), None),
        ("https://docs.python.org./3/", "https://docs.python.org/3/"),
        ("http://h:80/", "http://h/"),
        ("http://h:443/", "http://h:443/"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        ("http://h/../../a/..", "http://h/"),
        ("http://h/a/%2e%2E/b", "http://h/b"),
        ("http://h/%7euser/%c3%a9", "http://h/~user/%C3%A9"),
        ("http://h/a%2fb", "http://h/a%2Fb"),
        ("http://h/é", "http://h/%C3%A9"),
        ("http://h/a#part", "http://h/a"),
        ("http://h?a=../b", "http://h/?a=../b"),
        ("http://127.0.0.1:80/", "http://127.0.0.1/"),
        ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_a_url_has_one_spelling(url: str, is_read_as: str | None) -> None:
    expected = is_read_as or "https://docs.python.org/A?b=c%20d"
    assert str(parse_url(url)) == expected
    assert str(parse_url(expected)) == expected


NO_URLS = r"""
    docs.python.org //docs.python.org/ ftp://docs.python.org/ file:///etc/passwd
    https:///etc/passwd https://user@docs.python.org/ https://docs.python.org:443@evil.example/
    https://docs.python.org%40evil.example/ https://docs.python.org\@evil.example/
    https://docs.python.org/a\..\b https://docs.python.org:/ https://docs.python.org:0/
    https://docs.python.org:99999/ https://docs.python.org:x/ https://docs.python.org../
    https://döcs.example/ https://docs。python。org/ http://2130706433/ http://0x7f.1/ http://127.1/
    http://1.2.3.4.5/ http://[::1/ http://[fe80::1%25eth0]/ http://[v1.a]/ http://h/%zz http://h/%
"""
WITH_BLANKS = ("", "https://docs.python.org /", "https://docs.python.org/\n")
LONG = ("https://" + "a" * 64 + ".example/", "http://h/" + "a" * 2000)


@pytest.mark.parametrize(
    "url", [*NO_URLS.split(), *WITH_BLANKS, "https://evil.example\t.docs.python.org/", *LONG]
)
def test_what_could_be_read_in_two_ways_is_no_url(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_url(url)


@pytest.mark.parametrize(
    ("pattern", "url", "is_covered", "is_met"),
    [
        (DOCS, "https://docs.python.org/", True, "yes"),
        (DOCS, "https://docs.python.org/3/?a=b", True, "yes"),
        (DOCS, "https://DOCS.python.org.:443/3/", True, "yes"),
        (DOCS, "https://docs.python.org/a%2fb", True, "yes"),
        (DOCS, "http://docs.python.org/", False, "maybe"),
        (DOCS, "https://docs.python.org:8443/", False, "maybe"),
        (DOCS, "https://docs.python.org.evil.com/", False, "no"),
        (DOCS, "https://xdocs.python.org/", False, "no"),
        (DOCS, "https://evil.com/?https://docs.python.org/", False, "no"),
        (DOCS, "https://evil.com#https://docs.python.org/", False, "no"),
        (DOCS, "https://docs.python.org@evil.com/", False, "maybe"),
        ("https://h/docs/*", "https://h/docs/", True, "yes"),
        ("https://h/docs/*", "https://h/docs/a?b", True, "yes"),
        ("https://h/docs/*", "https://h/docs", False, "no"),
        ("https://h/docs/*", "https://h/docs2/", False, "no"),
        ("https://h/docs/*", "https://h/docs/../private", False, "no"),
        ("https://h/docs/*", "https://h/docs/%2e%2e/private", False, "no"),
        ("https://h/docs/*", "https://h/docs/..%2fprivate", False, "yes"),
        ("https://h/docs/*", "https://h/docs/%252e%252e/private", False, "yes"),
        ("https://h/docs/*", "https://h/docs/..;/private", False, "yes"),
        ("https://h/docs/*", "https://h/docs/%c0%ae%c0%ae/private", False, "yes"),
        ("https://h/docs/*", "https://h/docs/.%00./private", False, "yes"),
        ("https://h/docs/*", "https://h/docs/..%20/private", False, "yes"),
        ("https://h/docs/*", "https://h/docs/a.b/%20c%20d", True, "yes"),
        ("https://h/private/*", "https://h/private./a", False, "maybe"),
        ("https://h/private/*", "https://h/priv%09ate/a", False, "maybe"),
        ("https://h/docs/*", "https://h//docs/a", False, "yes"),
        ("https://h/docs/*", "https://h/DOCS/a", False, "yes"),
        ("https://h/docs/*", "https://h/x/..%2fdocs/a", False, "maybe"),
        ("https://h/docs/*", "https://h/d%6fcs/a", True, "yes"),
        ("https://h/private/*", "https://h/docs/..%2fprivate/a", False, "maybe"),
        ("https://h/page", "https://h/page", True, "yes"),
        ("https://h/page", "https://h/page?a", False, "yes"),
        ("https://h/page", "https://h/page/a", False, "no"),
    ],
)
def test_patterns(pattern: str, url: str, is_covered: bool, is_met: str) -> None:
    check_pattern(FETCH, pattern)
    subject = Subject(FETCH, {"url": url})
    assert subject.certainly_matches(pattern) is is_covered
    assert subject.may_match(pattern) == is_met


PATTERNS = """
    docs.python.org https://*.python.org/* https://docs.python.org* https://docs.python.org/*/a
    https://docs.python.org/** https://user@docs.python.org/* https://docs.python.org:443/*
    https://DOCS.python.org/* https://docs.python.org/a/../* https://docs.python.org/?next=/*
    http* docs/**
"""


@pytest.mark.parametrize("pattern", ["", *PATTERNS.split()])
def test_a_pattern_that_would_match_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        check_pattern(FETCH, pattern)


@pytest.mark.parametrize("policy", list(Approvals))
def test_the_network_asks_unless_it_is_allowed(policy: Approvals) -> None:
    def kind(mode: Mode, url: str, *patterns: str, exact: str = "") -> str:
        remembered = [*((pattern, False) for pattern in patterns), (exact, True)]
        return verdict(mode, FETCH, {"url": url}, policy, remembered).kind

    page, other = "https://docs.python.org/3/", "https://docs.python.org.evil.com/3/"
    assert kind(mode({}), page) == kind(mode({}), other) == "ask"
    ruled = mode({DOCS: "allow"})
    assert (kind(ruled, page), kind(ruled, other)) == ("allow", "ask")
    assert (kind(mode({}), page, DOCS), kind(mode({}), other, DOCS)) == ("allow", "ask")
    site = Subject(FETCH, {"url": page}).exact
    assert site == DOCS
    assert kind(mode({}), "https://docs.python.org/2/", exact=site) == "allow"
    assert kind(mode({}), other, exact=site) == "ask"
    denied = mode({"*": "allow"}, DOCS)
    assert (kind(denied, page), kind(denied, other)) == ("deny", "allow")
    assert kind(denied, "http://docs.python.org/3/") == "ask"
    assert verdict(denied, FETCH, {"url": "http://docs.python.org/"}, policy).always_asks
    without = mode({}).model_copy(update={"groups": ()})
    assert kind(without, page, "*") == "deny"


def test_what_is_no_url_is_neither_covered_nor_free() -> None:
    subject = Subject(FETCH, {"url": "https://a@b/"})
    assert (subject.certainly_matches(DOCS), subject.may_match(DOCS)) == (False, "maybe")
    assert subject.exact is None
    assert not Subject(FETCH, {"url": None}).certainly_matches(DOCS)


def test_hosts_that_are_allowed_by_name() -> None:
    assert parse_authority("LOCALHOST:8080") == "localhost:8080"
    for host in ("intranet.example", "intranet.example:80", "[::1]:9000"):
        assert parse_authority(host) == host
    for wrong in ("a/b", "a?", "a@b", "http://a", "*"):
        with pytest.raises(ValueError, match=r".+"):
            parse_authority(wrong)
