"""What git is told, for it looks around before it does what it is told to do."""

import os
from pathlib import Path

from modes.rules.protected_paths import NO_SECRETS, SECRETS
from modes.rules.shell_words import command_words

ATTRIBUTES = Path(os.path.realpath("/run"), "modeshift.gitattributes")
"""Where ``attributes`` are, in the sandbox of a line that ``shows_changes``."""
_ALWAYS = {
    # A program that the settings of a folder name; a bare repository among the files.
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
}
_SHOWING = ("diff", "status", "show", "log")


def shows_changes(line: str) -> bool:
    """Whether a line for the shell is one git command, and one that shows changes."""
    words = command_words(line) or ()
    return len(words) > 1 and words[0] == "git" and words[1] in _SHOWING


def environment(line: str = "", only_looks_in: Path | None = None) -> dict[str, str]:
    """Settings for a line in the sandbox; they go before the user's and the repository's.

    ``only_looks_in`` is the workspace of one that runs unasked: git then looks at no other
    folder, whatever the repository calls its work tree.
    """
    settings = dict(_ALWAYS)
    if shows_changes(line):
        settings["core.attributesFile"] = str(ATTRIBUTES)
    if (
        only_looks_in is not None
    ):  # in a submodule git would start another git, to look at its files
        settings["diff.ignoreSubmodules"] = "dirty"
    given = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        given |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    tree = _work_tree(only_looks_in) if only_looks_in is not None else None
    return given if tree is None else {**given, "GIT_WORK_TREE": str(tree)}


def _work_tree(workspace: Path) -> Path | None:
    """The folder of the repository that the workspace is in, as git finds it."""
    folders = (workspace, *workspace.parents)
    return next((one for one in folders if os.path.lexists(one / ".git")), None)


def attributes() -> bytes:
    """Of what looks as if it held a secret, also one of old, git says that it differs, not how.

    A repository's own ``.gitattributes`` go before them.
    """
    secrets = list(map(_in_any_case, SECRETS))
    lines = [f"{name} -diff" for name in secrets]
    lines += [f"{_in_any_case(name)} !diff" for name in sorted(NO_SECRETS)]
    lines += [f"**/{name}/** -diff" for name in secrets]
    return "\n".join([*lines, ""]).encode()


def _in_any_case(name: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name)
