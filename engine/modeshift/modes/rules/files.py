"""Which files a mode edits (``fileRegex``), and which always ask or are secret."""

import re
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Literal

import regex

from modeshift.modes.errors import SlowPatternError

MAX_CHARACTERS = 1000
MAX_UNROLLED = 100_000
"""The characters of a pattern, multiplied by its counted repetitions."""
SECONDS = 0.1
# The flag that allows blanks and comments within a count, and patterns that call themselves.
_REFUSED = regex.compile(r"\(\?[a-zA-Z0-9-]*x|\(\?(?:R|[+-]?\d|&|P>)")

_ANYTHING = regex.compile(r"\^?\(?(?:\.|\[\\s\\S\])[*+]\??\)?\$?|\.|\^")
# Anchors and look-arounds, and all else that might look to the left.
_LOOKS_BEHIND = regex.compile(r"(?<!\[)\^|\(\?|\\[a-zA-CE-RT-VX-Z](?<!\\[dsw])")


def check_file_regex(pattern: str) -> None:
    """Raise ``ValueError`` for an invalid or too large regular expression."""
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(
            f"the pattern has {len(pattern)} characters; {MAX_CHARACTERS} are the limit"
        )
    if refused := _REFUSED.search(pattern):
        raise ValueError(f"'{pattern[:60]}' may not have {refused[0]!r}")
    counts = [int(count) for count in regex.findall(r"\{(\d+)", pattern)]
    if len(pattern) * prod(max(count, 1) for count in counts) > MAX_UNROLLED:
        raise ValueError(f"'{pattern[:60]}' repeats too much: {' x '.join(map(str, counts))} times")
    try:
        _compile(pattern)
    except (regex.error, RecursionError, MemoryError) as error:
        raise ValueError(f"'{pattern[:60]}' is no regular expression: {error}") from error


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a path; raises ``SlowPatternError``.

    Never in a path with a control character: ``$`` also matches before a final line break.
    """
    if any(ord(character) < 32 for character in text):
        return False
    try:
        return _compile(pattern).search(text, timeout=SECONDS, concurrent=True) is not None
    except (TimeoutError, MemoryError) as error:
        raise SlowPatternError(pattern) from error


def is_found_in_every_path(pattern: str) -> bool:
    """Whether the pattern certainly restricts nothing, as ``.*`` does; it must be valid.

    One that matches the empty text matches at the end of every path, unless it looks to the left.
    """
    if _ANYTHING.fullmatch(pattern):
        return True
    return _LOOKS_BEHIND.search(pattern) is None and is_found(pattern, "")


@lru_cache(maxsize=1000)
def _compile(pattern: str) -> regex.Pattern[str]:
    # ASCII as in JavaScript, for which these patterns were written.
    return regex.compile(pattern, regex.ASCII)


NEVER = frozenset({".git"})
"""Names below which no tool writes."""
ASK = frozenset(
    {
        *(".kilocodemodes", ".roomodes", ".kilocode", ".roo", ".kilocodeignore", ".rooignore"),
        *("agents.md", "claude.md", "gemini.md", ".gemini", ".codex", ".ssh", ".agents", ".kilo"),
        *(".roorules", ".kilocoderules", "agent.md", "agents.local.md", "claude.local.md"),
        "agents.override.md",
        *(".claude", ".cursor", ".cursorrules", ".clinerules", ".windsurf", ".zed", ".mcp.json"),
        *(".travis.yml", "jenkinsfile", "azure-pipelines.yml", ".buildkite", ".ci", ".drone.yml"),
        *(".vimrc", ".exrc", ".nvim.lua", ".fleet", ".continue", ".junie", ".aider.conf.yml"),
        *(".vscode", ".idea", ".devcontainer", ".github", ".gitlab-ci.yml", ".circleci"),
        *(".gitattributes", ".gitmodules", ".gitconfig", ".husky", ".pre-commit-config.yaml"),
        *(".envrc", ".env", ".bashrc", ".bash_profile", ".bash_login", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".npmrc", ".yarnrc"),
        *("mcp.json", "langgraph.json", "opencode.json", "opencode.jsonc", ".opencode"),
        *(".goosehints", "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml"),
        *("cloudbuild.json", "appveyor.yml", "appveyor.yaml", ".appveyor.yml", ".appveyor.yaml"),
        *(".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".gitea", ".forgejo"),
        *("mise.toml", "mise.local.toml", ".mise.toml", ".mise.local.toml", ".mise"),
        *("mise/config.toml", ".cargo/config", ".cargo/config.toml"),
        *(".hg/hgrc", ".hg/hgrc-not-shared"),
    }
)
"""Names, in lower case, that ask before a write.

With a slash it is that name in that folder only; programs write the rest of the folder.
"""
SECRETS = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *(".ssh", ".gnupg", ".aws", ".kube", ".password-store", ".vault-token"),
    *(".git-credentials", ".pypirc", ".npmrc", ".yarnrc.yml", "credentials.json"),
    *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "service-account*.json"),
    *("*.tfstate", "*.tfvars"),
)
"""Patterns of names, in lower case, that ask before a read."""
DEPENDENCIES = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"})
"""Folders of what others have written, certificates and instructions among it: nothing in them is
protected from commands, and nothing in them is told to the model."""
NO_SECRETS = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})


def get_protection(path: str) -> Literal["ask", "deny"] | None:
    """What a write to ``path``, relative to the workspace, needs at least; None for nothing."""
    ordered = path.casefold().split("/")
    names = {*ordered, *map("/".join, pairwise(ordered))}
    if NEVER & names:
        return "deny"
    return "ask" if ASK & names or any(map(_NAMES.fullmatch, ordered)) else None


def is_protected(folder: str, name: str) -> bool:
    """Whether ``name`` is protected in ``folder``, whose path is empty or ends with a slash."""
    name = name.casefold()
    if name in ASK or name in NEVER or (name[0] in ".l" and _NAMES.fullmatch(name)):
        return True
    return name in _BELOW and f"{folder.casefold()[:-1].rpartition('/')[2]}/{name}" in ASK


def is_secret(path: str) -> bool:
    """Whether the file, or a folder above it, looks as if it held a secret."""
    path = path.casefold()
    # One search for all names together; only then name by name, for the exceptions.
    return _SECRET.search(path) is not None and any(
        _SECRET.search(name) and name not in NO_SECRETS for name in path.split("/")
    )


def _translate(name: str) -> str:
    return re.escape(name).replace(r"\*", "[^/]*")


_NAMES = re.compile(
    r"\.(?:roo|cline|kilocode)rules-.*|\.lefthook.*|lefthook(?:-local)?\.(?:ya?ml|toml|jsonc?)"
)
_BELOW = frozenset(name.partition("/")[2] for name in ASK if "/" in name)
_SECRET = re.compile(rf"(?:^|/)(?:{'|'.join(map(_translate, SECRETS))})(?:/|$)")
