"""``BubblewrapSandbox``: prepares a command, runs it, and says what it did to the result."""

import asyncio
import shlex
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from modeshift.modes.errors import ToolFailedError
from modeshift.sandbox import git, seccomp
from modeshift.sandbox.bubblewrap import Bubblewrap, find_bubblewrap, try_program
from modeshift.sandbox.folder_watcher import SHARE
from modeshift.sandbox.mounts import ROOT, Protection, choose_protection
from modeshift.sandbox.scan import (
    Scan,
    Scanner,
    find_few_linked_outside,
    find_linked_outside,
    get_scanner,
)
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.process import Ended, Limits, Program, run_program
from modeshift.tools.processes.sandboxes import (
    Command,
    NoSandbox,
    SandboxCheck,
    SandboxOptions,
    SandboxService,
)
from modeshift.tools.processes.workspace_lock import workspace_lock
from modeshift.tools.workspace.text import show_name
from modeshift.tools.workspace.workspace import Workspace

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


MAX_NAMED = 10
READ_ONLY = ("Read-only file system", "resource busy", "cross-device link")
HIDDEN = ("ermission denied", "can only add regular files", "unsupported file type")
"""What programs say of files that the sandbox makes read-only, or hides."""
NO_CHILD = "cannot fork"
NOT_INSTALLED = (
    "Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap",
    "macOS has none: let the agent work in a Linux machine, or read every command",
)
NOT_ALLOWED = (
    "Ubuntu 24.04 and newer forbid user namespaces to programs without an AppArmor profile:",
    "  install the package apparmor-profiles, and load its profile bwrap-userns-restrict",
    "in a container: allow user namespaces, or work on the machine itself",
)
"""What the user can do where the sandbox does not work."""


def find_bubblewrap_sandbox(options: SandboxOptions) -> "BubblewrapSandbox | NoSandbox":
    """The sandbox, if bubblewrap works on this machine. Blocks."""
    bubblewrap = find_bubblewrap()
    if not bubblewrap.problem:
        return BubblewrapSandbox(bubblewrap, options)
    return NoSandbox(bubblewrap.problem, NOT_ALLOWED if bubblewrap.program else NOT_INSTALLED)


_Prepared = tuple[Scan, Protection, Program]


@dataclass(frozen=True)
class BubblewrapSandbox:
    """A ``Sandbox`` as ``modeshift.tools.processes.sandboxes`` describes it."""

    bubblewrap: Bubblewrap
    options: SandboxOptions

    @property
    def has_network(self) -> bool:
        """Whether commands can use the network."""
        return self.options.has_network

    def build_program(self, workspace: Workspace, service: SandboxService) -> Program:
        """What to start for it. Blocks; raises ``OSError``."""
        options = self.options._replace(has_network=service.has_network)
        protection = choose_protection(self._scan(workspace))
        calling = Calling(edits_freely=service.is_writable)
        line = f"exec {shlex.join(service.command)}"
        return self.bubblewrap.build_program(
            options, protection, line, service.folder, calling, service
        )

    def check(self, workspace: Path) -> Iterator[SandboxCheck]:
        """Try what the sandbox enforces. Blocks."""
        yield SandboxCheck("yes", f"commands run in a sandbox: {self.bubblewrap.version}")
        yield SandboxCheck("yes", "  they have none of the agent's environment, no keys")
        try:
            scanner = Scanner(workspace, finds_secrets=True)
            findings = scanner.scan(Workspace(workspace))
            yield _check_watches(scanner)
            for text, line in TRIED:
                if self.options.has_network and line == NETWORK:
                    yield SandboxCheck("no", "  the network is within reach: COMMAND_NETWORK=true")
                else:
                    holds = _holds(self.bubblewrap, self.options, findings, line)
                    yield SandboxCheck("yes" if holds else "no", f"  {text} (tried just now)")
            yield _check_hard_links(findings)
        except ToolFailedError as error:
            yield SandboxCheck("no", f"  none runs here: {error}")
            return
        if not self.bubblewrap.can_bound_tmp:
            yield SandboxCheck("partly", "  nothing bounds /tmp: bubblewrap 0.8 or newer can")
        if not seccomp.has_filter():
            text = "  system calls are not filtered: there is no filter for this machine"
            why = "what runs unasked, git diff say, may start programs that a repository names"
            yield SandboxCheck("partly", text, (why,))

    async def run(
        self, workspace: Workspace, command: Command, limits: Limits, calling: Calling
    ) -> Ended:
        """Run the command; the sandbox's notices follow its output."""

        def prepare() -> _Prepared:
            folder = workspace.resolve_folder(command.cwd)
            findings = self._scan(workspace, hides_secrets=calling.is_closed_off)
            if calling.edits_freely:
                findings.linked = find_few_linked_outside(findings, calling.writable or ())
            protection = choose_protection(findings)
            program = self.bubblewrap.build_program(
                self.options, protection, command.line, folder, calling
            )
            return findings, protection, program

        async with calling.lock or workspace_lock(workspace.root, calling.emit):
            findings, protection, program = await _prepare(prepare)
            ended = await run_program(program, command.seconds, limits, calling.emit)
            notices = [
                *_explain_errors(command.line, ended.text, findings, calling),
                *_name_closed_folders(protection, calling),
            ]
            if calling.writable:
                only = "by the plan this command could change only what is there of"
                notices.append(f"{only}: {_name({*calling.writable})}")
            if calling.edits_freely:
                notices += await asyncio.to_thread(self._name_made, workspace, findings)
            else:
                notices.append("this command could not change the workspace")
        text = "\n".join([ended.text, *(f"[{notice}]" for notice in notices)])
        return replace(ended, text=text)

    def _scan(self, workspace: Workspace, *, hides_secrets: bool = False) -> Scan:
        finds_secrets = hides_secrets or not self.options.shows_secrets
        return get_scanner(workspace.root, finds_secrets=finds_secrets).scan(workspace)

    def _name_made(self, workspace: Workspace, before: Scan) -> list[str]:
        """What the command made that steers people and tools."""
        try:
            made = self._scan(workspace).deciding - before.deciding
        except (ToolFailedError, OSError) as error:
            return [f"the command has run, and {error}"]
        what = "such files steer people and tools; the user should look at them"
        return [f"made {_name(made)}: {what}"] if made else []


async def _prepare(prepare: Callable[[], _Prepared]) -> _Prepared:
    """Run ``prepare`` in a thread; close its result if the run is cancelled meanwhile."""
    # A future and no task: who cancels every task of the loop would lose what the thread makes.
    preparing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, prepare)
    try:
        return await asyncio.shield(preparing)
    except OSError as error:
        raise ToolFailedError(f"the sandbox cannot be made, nothing ran: {error}") from error
    except asyncio.CancelledError:
        preparing.add_done_callback(_close)
        raise


def _close(preparing: "asyncio.Future[_Prepared]") -> None:
    if preparing.exception() is None:
        preparing.result()[2].close()


def _explain_errors(line: str, output: str, findings: Scan, calling: Calling) -> Iterator[str]:
    """Say where the sandbox may be the reason of an error, as programs do not know of it."""
    read_only = findings.steering - findings.secrets | findings.links | findings.linked
    if read_only and any(text in output for text in READ_ONLY):
        yield f"read-only for commands: {_name(read_only)}"
    if git.shows_changes(line):
        if named := {path for path in findings.secrets if path in output}:
            yield f"hidden from commands, empty for git: {_name(named)}"
    elif findings.secrets and any(text in output for text in HIDDEN):
        yield f"hidden from commands: {_name(findings.secrets)}"
    if calling.is_read_only and NO_CHILD in output:
        yield (
            "a command that runs unasked cannot start another program, such as a filter or a diff "
            "program of git's; in other words it asks, and can"
        )


def _name_closed_folders(protection: Protection, calling: Calling) -> Iterator[str]:
    """Name the folders that are closed as a whole, or the model would search them in vain."""
    read_only = protection.read_only_folders if calling.edits_freely else set()
    for folders, how in ((protection.hidden_folders, "hidden from"), (read_only, "read-only for")):
        if folders:
            is_but_plain = ROOT in folders and protection.plain
            but = f" but for {_name(protection.plain)}" if is_but_plain else ""
            why = "there is too much in it that must be protected"
            yield f"{how} commands as a whole, since {why}: {_name(folders)}{but}"


def _name(paths: set[str]) -> str:
    names = [show_name(path) for path in sorted(paths)[:MAX_NAMED]]
    return ", ".join(names) + (" and more" if len(paths) > MAX_NAMED else "")


def _holds(bubblewrap: Bubblewrap, options: SandboxOptions, findings: Scan, line: str) -> bool:
    protection, root = choose_protection(findings), findings.root
    with NamedTemporaryFile() as mark:
        tried = line.replace("{mark}", mark.name)
        program = bubblewrap.build_program(options, protection, tried, root, Calling())
        return not try_program(program)


def _check_watches(scanner: Scanner) -> SandboxCheck:
    unwatched, count = scanner.count_unwatched()
    if not unwatched:
        text = "  what is new in the workspace is protected, too: the kernel says what changes"
        return SandboxCheck("yes", text)
    return SandboxCheck(
        "partly",
        f"  each command waits while {unwatched} of {count} folders are read again",
        (
            "the kernel does not see every change on a network file system and some others;",
            f"  elsewhere raise fs.inotify.max_user_watches, of which one in {SHARE} is used",
        ),
    )


def _check_hard_links(findings: Scan) -> SandboxCheck:
    protected = find_few_linked_outside(findings)
    unprotected = find_linked_outside(findings.root) - protected
    if not unprotected:
        text = "  no file outside can be changed by a hard link in the workspace"
        return SandboxCheck("yes", f"{text}; {len(protected)} are read-only" if protected else text)
    return SandboxCheck(
        "no",
        f"  commands can change files outside by {len(unprotected)} hard links in the workspace",
        (
            f"the first is {min(unprotected)!r}; uv, pnpm and clones of a local folder make them:",
            "  copy (uv --link-mode copy, pnpm package-import-method=copy, "
            "git clone --no-hardlinks)",
        ),
    )
