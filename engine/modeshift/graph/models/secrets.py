"""Secrets: what looks like one in a text, and which ones the environment holds."""

import os
import re
from base64 import b64encode
from urllib.parse import quote

MASK = "[masked]"
MIN_LENGTH = 8
_NAMES = re.compile(
    r"(?i)(?:keys?|tokens?|secrets?|passw(?:or)?ds?|credentials?|_(?:pass|pats?|pwd|auth))(?:_\d+)?$"
)
_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")
# Formats that can be told by their look. Most need a digit, so that no_word_of_this_kind matches.
_LOOKS = re.compile(
    r"""
    \b(?:sk|pk|rk)-(?=[\w-]*\d)[\w-]{16,}          # OpenAI, Anthropic, OpenRouter, DeepSeek
    | \b(?:gsk_|xai-|pplx-|nvapi-|csk-|hf_)[\w-]{20,} | \b(?:r8|fw)_(?=\w*\d)\w{20,}
    | \b(?:lsv2_(?:pt|sk)|pcsk|(?:sk|rk|pk)_(?:live|test)|sk|whsec|ntn)_(?=\w*\d)\w{20,}
    | \btvly-(?=[\w-]*\d)[\w-]{16,} | \bkey-[0-9a-f]{32}\b | \b[0-9a-f]{32}-us\d{1,2}\b
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*
    | \b(?:org|user)-(?=[A-Za-z]*\d)[A-Za-z0-9]{16,} # OpenAI's organisations
    | \b(?:proj|req)_(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{20,}
    | \bA(?:KIA|SIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bGOCSPX-[\w-]{20,} | \bya29\.[\w-]{20,}
    | \bxox[a-z]-[\w-]{10,} | \bNRAK-[0-9A-Z]{20,} | \b\d{8,10}:AA[\w-]{32,}
    | \b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}     # Discord
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+            # a JSON web token
    | \b[Bb]earer\ [\w.~+/-]{8,} | \b[Bb]asic\ (?=[\w+/]*[A-Z0-9=])[\w+/=]{8,}
    """,
    re.VERBOSE,
)
# A value that is said to be a secret: in a URL, a header, an assignment.
_SAID = re.compile(
    r"""
    (?<=://) [^\s/:@]* : (?P<url>[^\s/@]{3,}) @
    | (?i:[?&](?:[\w-]*(?:key|token|secret|passw(?:or)?d|pwd)|sig|auth)=)(?P<query>[^\s&\#"'<>]{8,})
    | (?i:(?<![\w-])[\w-]*(?:api[_-]?key|access[_-]?key|account[_-]?key|auth[_-]?token
        |access[_-]?token|secret(?:[_-]?(?:access)?[_-]?key)?|passw(?:or)?d|_pwd|_pat))
      ["']?(?:\s*[:=]\s*|\s+(?=[\w/+-]*\d))["']?
      (?P<assigned>(?=[^\s"',;]*\d|(?:[^\s"',;]*?[a-z][A-Z]){3})[^\s"',;&<>(){}\[\]]{8,})
    """,
    re.VERBOSE,
)


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """``text`` without what looks like a secret, and without the ``known`` secrets."""
    for secret in known:
        text = text.replace(secret, MASK)
    return _SAID.sub(_mask_value, _LOOKS.sub(MASK, text))


def _mask_value(found: re.Match[str]) -> str:
    start, end = found.span(str(found.lastgroup))
    return found[0][: start - found.start()] + MASK + found[0][end - found.start() :]


def find_secrets() -> tuple[str, ...]:
    """The secrets in the environment, the longest first; each one of a list by itself."""
    found = {
        part.strip()
        for name, value in os.environ.items()
        if _NAMES.search(name)
        for part in (value, *re.split(r"[,:\s]", value))
    }
    found |= {one for value in os.environ.values() for one in _IN_URL.findall(value)}
    found = {one for one in found if len(one) >= MIN_LENGTH}
    # Base64 of what begins with one; its last characters depend on what follows.
    found |= {b64encode(one.encode()[: len(one) // 3 * 3]).decode() for one in found}
    found |= {quote(one, safe="") for one in found}
    return tuple(sorted(found, key=len, reverse=True))
