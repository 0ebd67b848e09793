"""Secrets: what looks like one in a text, and which ones the environment holds."""

import os
import re

MASK = "[masked]"
MIN_LENGTH = 8
_NAMES = re.compile(r"(?i)(?:key|token|secret|passw(?:or)?d|_pass|credentials?)(?:_\d+)?$")
_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")
# Formats that can be told by their look. Most need a digit, so that no_word_of_this_kind matches.
_LOOKS = re.compile(
    r"""
    \b(?:sk|pk|rk)-(?=[\w-]*\d)[\w-]{16,}          # OpenAI, Anthropic, OpenRouter
    | \b(?:gsk_|xai-)[A-Za-z0-9]{20,} | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*
    | \b(?:org|user)-(?=[A-Za-z]*\d)[A-Za-z0-9]{16,} # OpenAI's organisations
    | \b(?:proj|req)_(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bhf_[A-Za-z0-9]{20,}
    | \bAKIA[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bxox[a-z]-[\w-]{10,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+            # a JSON web token
    | \b[Bb]earer\ [\w.~+/-]{8,} | \bBasic\ [\w+/=]{8,}
    """,
    re.VERBOSE,
)


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """``text`` without what looks like a secret, and without the ``known`` secrets."""
    for secret in known:
        text = text.replace(secret, MASK)
    return _LOOKS.sub(MASK, text)


def find_secrets() -> tuple[str, ...]:
    """The secrets in the environment, the longest first; each one of a list by itself."""
    found = {
        part.strip()
        for name, value in os.environ.items()
        if _NAMES.search(name)
        for part in (value, *re.split(r"[,:\s]", value))
    }
    found |= {one for value in os.environ.values() for one in _IN_URL.findall(value)}
    return tuple(sorted((one for one in found if len(one) >= MIN_LENGTH), key=len, reverse=True))
