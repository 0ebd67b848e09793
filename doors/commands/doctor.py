"""``make doctor``: what is enforced on this machine, what is not, and how to get the rest."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from doors.commands.cli import run
from graph.configuration.loading import AgentLoader
from graph.deps import AgentDeps
from graph.settings import Settings, load_settings
from modes.errors import ToolFailedError
from tools.command import MAX_SECONDS
from tools.sandbox import seccomp
from tools.sandbox.bubblewrap import Bubblewrap, Sandbox, bubblewrap
from tools.sandbox.hard_links import few_linked_outside, linked_outside
from tools.sandbox.scan import scan
from tools.workspace.openat import kernel_opens
from tools.workspace.ripgrep import is_held, version

_OPEN = "they can read the agent's own environment with its keys, in /proc"
YES, NO, PART = "yes", "no", "partly"
NETWORK = "test $(grep -c : /proc/net/dev) = 1"
_NOT_MADE = 'if touch "{0}"; then rm -f "{0}"; exit 1; fi'
TRIED = (
    ("the machine is read-only", _NOT_MADE.format("/etc/.modeshift-doctor")),
    ("your home folder is read-only", _NOT_MADE.format("$HOME/.modeshift-doctor")),
    (
        "a mode that may not edit everything has the workspace read-only",
        _NOT_MADE.format(".modeshift-doctor"),
    ),
    ("temporary files of other programs are away", 'test ! -e "$MARK"'),
    ("other programs cannot be seen, or ended", 'test "$(ls -d /proc/[0-9]* | wc -l)" -lt 9'),
    ("no namespaces of its own, to attack the kernel from", "! unshare --user true"),
    ("the network is out of reach", NETWORK),
)
"""What the sandbox is for, and a line for the shell that fails where it does not hold."""


def main() -> Iterator[str]:
    """The report; raises ``UserError``."""
    settings = load_settings()
    deps = AgentLoader(settings).deps()
    yield f"workspace  {settings.workspace}"
    yield f"approvals  {settings.approvals}"
    yield ""
    yield from _files()
    yield from _commands(settings, bubblewrap())
    yield from _modes(deps)
    yield from _door(settings)


def _row(kind: str, what: str, *more: str) -> str:
    return "\n".join([f"{kind:<7} {what}", *(f"        {line}" for line in more)])


def _files() -> Iterator[str]:
    by = "by the kernel (openat2)" if kernel_opens() else "name by name; no openat2 here"
    yield _row(YES, f"files are opened below the workspace, no link followed: {by}")
    found = version()
    if found:
        yield _row(YES, f"searches take linear time: {found}")
        if is_held():
            yield _row(YES, "  the kernel holds rg to the folder it searches (Landlock)")
        else:
            yield _row(PART, "  slowly: there is no Landlock here, so every file is opened for rg")
    else:
        yield _row(
            NO, "search_files: the rg program is missing; run `make clean`, then `make test`"
        )


def _commands(settings: Settings, found: Bubblewrap) -> Iterator[str]:
    limits = f"{settings.command_memory} MiB, {settings.command_processes} processes"
    yield _row(YES, f"commands are limited: {limits}, {MAX_SECONDS} s")
    if settings.sandbox == "off":
        yield _row(NO, "commands run without a sandbox, and every one asks: SANDBOX=off", _OPEN)
    elif found.problem:
        yield _row(
            NO,
            "commands run without a sandbox, and every one asks",
            found.problem,
            *_remedies(found),
            _OPEN,
        )
    else:
        yield _row(YES, f"commands run in a sandbox: {found.version}")
        yield _row(YES, "  they have none of the agent's environment, no keys")
        try:
            yield from _sandbox(settings, found)
        except ToolFailedError as error:
            yield _row(NO, f"  none runs here: {error}")


def _sandbox(settings: Settings, found: Bubblewrap) -> Iterator[str]:
    for what, line in TRIED:
        if settings.command_network and line == NETWORK:
            yield _row(NO, "  the network is within reach: COMMAND_NETWORK=true")
        else:
            kind = YES if _holds(settings, found, line) else NO
            yield _row(kind, f"  {what} (tried just now)")
    yield from _hard_links(settings.workspace.resolve())
    if not found.can_bound_tmp:
        yield _row(PART, "  nothing bounds /tmp: bubblewrap 0.8 or newer can")
    if not seccomp.is_known():
        yield _row(
            PART,
            "  system calls are not filtered: there is no filter for this machine",
            "what runs unasked, git diff say, may start programs that a repository names",
        )


def _hard_links(workspace: Path) -> Iterator[str]:
    protected = few_linked_outside(workspace, scan(workspace))
    open_ones = linked_outside(workspace) - protected
    if not open_ones:
        text = "  no file outside can be changed by a hard link in the workspace"
        yield _row(YES, f"{text}; {len(protected)} are read-only" if protected else text)
        return
    yield _row(
        NO,
        f"  commands can change files outside by {len(open_ones)} hard links in the workspace",
        f"the first is {min(open_ones)!r}; uv, pnpm and clones of a local folder make them:",
        "  copy (uv --link-mode copy, pnpm package-import-method=copy, git clone --no-hardlinks)",
    )


def _holds(settings: Settings, found: Bubblewrap, line: str) -> bool:
    sandbox = Sandbox(found, settings.command_network)
    folder = settings.workspace.resolve()
    with NamedTemporaryFile() as mark:
        environment = {"PATH": os.defpath, "HOME": str(Path.home()), "MARK": mark.name}
        with sandbox.start(folder, scan(folder), folder, line, environment) as start:
            try:
                start.run(60)
            except subprocess.SubprocessError:
                return False
    return True


def _remedies(found: Bubblewrap) -> Iterator[str]:
    if not found.program:
        yield "Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap"
        yield "macOS has none: let the agent work in a Linux machine, or read every command"
        return
    yield "Ubuntu 24.04 and newer forbid user namespaces to programs without an AppArmor profile:"
    yield "  install the package apparmor-profiles, and load its profile bwrap-userns-restrict"
    yield "in a container: allow user namespaces, or work on the machine itself"


def _modes(deps: AgentDeps) -> Iterator[str]:
    """Whether a mode that may not edit everything can have commands do it."""
    for slug in deps.catalog:
        restriction = deps.edit_restriction(slug)
        if restriction is None or deps.catalog[slug].grant("command") is None:
            continue
        if deps.toolbox.sandbox is None:
            text = f"commands in {slug} mode can change the workspace, if you approve them"
            yield _row(NO, text, f"although {restriction}")
        else:
            text = f"commands in {slug} mode cannot change the workspace"
            yield _row(YES, text, restriction)


def _door(settings: Settings) -> Iterator[str]:
    yield _row(YES, "other web pages cannot use the dev server: Host, Origin and body are checked")
    if settings.tokens:
        yield _row(YES, f"the server on {settings.listen} asks for a token")
    else:
        yield _row(
            PART,
            "any program of this machine can use the dev server, other machines cannot",
            "set AUTH_TOKEN to ask for a token",
        )


if __name__ == "__main__":
    run(main, __doc__)
