"""What ``make doctor`` says about the sandbox; it tries what it can."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from modeshift.modes.errors import ToolFailedError
from modeshift.sandbox import seccomp
from modeshift.sandbox.bubblewrap import Bubblewrap, try_program
from modeshift.sandbox.mounts import choose_protection
from modeshift.sandbox.scan import Scan, find_few_linked_outside, find_linked_outside, scan
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.sandboxes import Check, SandboxOptions

NETWORK = "test $(grep -c : /proc/net/dev) = 1"
_NOT_MADE = 'if touch "{0}"; then rm -f "{0}"; exit 1; fi'
TRIED = (
    ("the machine is read-only", _NOT_MADE.format("/etc/.modeshift-doctor")),
    ("your home folder is read-only", _NOT_MADE.format("$HOME/.modeshift-doctor")),
    (
        "a mode that may not edit everything has the workspace read-only",
        _NOT_MADE.format(".modeshift-doctor"),
    ),
    ("temporary files of other programs are away", 'test ! -e "{mark}"'),
    ("other programs cannot be seen, or ended", 'test "$(ls -d /proc/[0-9]* | wc -l)" -lt 9'),
    ("no namespaces of its own, to attack the kernel from", "! unshare --user true"),
    ("the network is out of reach", NETWORK),
)
"""What the sandbox enforces, each with a shell line that fails where it does not."""


def check(bubblewrap: Bubblewrap, options: SandboxOptions, workspace: Path) -> Iterator[Check]:
    """The rows about the sandbox. Blocks."""
    yield Check("yes", f"commands run in a sandbox: {bubblewrap.version}")
    yield Check("yes", "  they have none of the agent's environment, no keys")
    try:
        found = scan(workspace)
        for text, line in TRIED:
            if options.has_network and line == NETWORK:
                yield Check("no", "  the network is within reach: COMMAND_NETWORK=true")
            else:
                holds = _holds(bubblewrap, options, found, line)
                yield Check("yes" if holds else "no", f"  {text} (tried just now)")
        yield _check_hard_links(found)
    except ToolFailedError as error:
        yield Check("no", f"  none runs here: {error}")
        return
    if not bubblewrap.can_bound_tmp:
        yield Check("partly", "  nothing bounds /tmp: bubblewrap 0.8 or newer can")
    if not seccomp.is_known():
        text = "  system calls are not filtered: there is no filter for this machine"
        why = "what runs unasked, git diff say, may start programs that a repository names"
        yield Check("partly", text, (why,))


def _holds(bubblewrap: Bubblewrap, options: SandboxOptions, found: Scan, line: str) -> bool:
    with NamedTemporaryFile() as mark:
        program = bubblewrap.build_program(
            options,
            choose_protection(found),
            line.replace("{mark}", mark.name),
            found.root,
            Calling(),
        )
        return not try_program(program)


def _check_hard_links(found: Scan) -> Check:
    protected = find_few_linked_outside(found)
    unprotected = find_linked_outside(found.root) - protected
    if not unprotected:
        text = "  no file outside can be changed by a hard link in the workspace"
        return Check("yes", f"{text}; {len(protected)} are read-only" if protected else text)
    return Check(
        "no",
        f"  commands can change files outside by {len(unprotected)} hard links in the workspace",
        (
            f"the first is {min(unprotected)!r}; uv, pnpm and clones of a local folder make them:",
            "  copy (uv --link-mode copy, pnpm package-import-method=copy, "
            "git clone --no-hardlinks)",
        ),
    )


def list_remedies(bubblewrap: Bubblewrap) -> tuple[str, ...]:
    """What the user can do where it does not work."""
    if not bubblewrap.program:
        return (
            "Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap",
            "macOS has none: let the agent work in a Linux machine, or read every command",
        )
    return (
        "Ubuntu 24.04 and newer forbid user namespaces to programs without an AppArmor profile:",
        "  install the package apparmor-profiles, and load its profile bwrap-userns-restrict",
        "in a container: allow user namespaces, or work on the machine itself",
    )
