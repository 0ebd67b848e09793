"""``Sandbox``: runs a command with bubblewrap, so that it sees the machine and changes nothing.

Namespaces of its own for processes, IPC, users and the network; the file system read-only,
but for a private ``/tmp`` and, where it may, the workspace. What looks as if it held a
secret is hidden. The kernel holds it: no text of a command is looked at.
"""

import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tools.sandbox import git, seccomp
from tools.sandbox.mounts import (
    Mounts,
    hidden_secrets,
    in_order,
    kept_in_place,
    machine,
    opened,
    protected,
    whole,
)
from tools.sandbox.scan import Closed, Scan
from tools.sandbox.start import Start

TRY_SECONDS = 10
CACHES = {  # the home folder is read-only, too
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "npm_config_cache": "/tmp/.npm",  # noqa: S108
    "TMPDIR": "/tmp",  # noqa: S108
}


@dataclass(frozen=True)
class Bubblewrap:
    """The program, as it is on this machine."""

    program: str = ""
    version: str = ""
    problem: str = ""
    """Why it cannot be used, and what to do; empty where it can."""
    can_bound_tmp: bool = False


@cache
def bubblewrap() -> Bubblewrap:
    """Look for it and try it, once per process. Blocks."""
    program = shutil.which("bwrap")
    if program is None:
        return Bubblewrap(problem="bubblewrap is not installed (bwrap; Linux only)")
    found = Bubblewrap(program, _output([program, "--version"]).strip())
    known = _output([program, "--help"])
    if "--ro-bind-fd" not in known:
        return replace(found, problem=f"{found.version} is too old: it has no --ro-bind-fd")
    found = replace(found, can_bound_tmp="--size" in known)
    if problem := _problem(found):
        return replace(found, problem=f"bubblewrap does not work here: {problem}")
    return found


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # our own command
            command, capture_output=True, timeout=TRY_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _problem(found: Bubblewrap) -> str:
    with Sandbox(found).start(Path("/usr"), Scan(), Path("/usr"), "true", {}) as start:
        try:
            start.run(TRY_SECONDS)
        except subprocess.CalledProcessError as error:
            text = error.stderr.decode("utf-8", "replace").strip()
            return text or f"exit code {error.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return ""


@dataclass(frozen=True)
class Sandbox:
    """How commands are run on this machine."""

    bubblewrap: Bubblewrap
    has_network: bool = False
    hidden: tuple[Path, ...] = ()
    """Files and folders of this project's own: with a provider's key, say."""
    shows_secrets: bool = False
    """Whether commands may read what in the workspace looks as if it held a secret."""
    has_children: bool = True
    """Whether a command may start another one, where there is a filter for system calls."""

    def closed(self, found: Scan) -> Closed:
        """What of it is to be protected, and how."""
        return replace(found, secrets=set()).closed if self.shows_secrets else found.closed

    def start(
        self,
        workspace: Path,
        found: Scan,
        folder: Path,
        line: str,
        environment: dict[str, str],
        *,
        writable: bool = False,
    ) -> Start:
        """How to run the shell's ``line`` in a folder. Blocks; raises ``OSError``.

        With ``writable`` the workspace can be changed, but for what was ``found`` to
        steer people or tools.
        """
        shell = line if self.has_children else f"exec {line}"
        with ExitStack() as stack:
            arguments = [
                self.bubblewrap.program,
                *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
                *("--cap-drop", "ALL"),
            ]
            if self.has_network:
                arguments.append("--share-net")
            descriptors = _Descriptors(stack)
            if seccomp.is_known():
                may = {"has_sockets": self.has_network, "has_children": self.has_children}
                arguments += ["--seccomp", descriptors.kept(seccomp.filter_file(**may))]
            mounts = machine(
                has_network=self.has_network,
                can_bound_tmp=self.bubblewrap.can_bound_tmp,
                hidden=self.hidden,
            )
            closed = self.closed(found)
            found = closed.found
            mounts |= whole(workspace, closed, writable=writable)
            if writable:
                mounts |= kept_in_place(workspace, found)
            mounts |= hidden_secrets(workspace, found, [*mounts])
            for path, option in protected(workspace, found) if writable else ():
                if workspace / path not in mounts:
                    source = descriptors.kept(opened(workspace, path))
                    mounts[workspace / path] = [option, source, str(workspace / path)]
            if git.shows_changes(line):
                mounts |= _for_git(workspace, mounts, descriptors)
            # By a file: they may be more than a command line takes.
            options = b"".join(os.fsencode(f"{option}\0") for option in in_order(mounts))
            arguments += ["--args", descriptors.kept(_file(options))]
            arguments += ["--chdir", str(folder), "--", "/bin/sh", "-c", shell]
            stack.pop_all()
        return Start(arguments, {**environment, **CACHES}, descriptors=tuple(descriptors))


def _file(content: bytes) -> int:
    """A descriptor to read it from."""
    descriptor = os.memfd_create("modeshift")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _for_git(workspace: Path, mounts: Mounts, descriptors: "_Descriptors") -> Mounts:
    """Its attributes; and empty files for hidden ones: it gives up at what it cannot read."""
    hidden = (
        place
        for place, how in mounts.items()
        if how[1] == "/dev/null" and place.is_relative_to(workspace)
    )
    empty = {place: _data(b"", place, descriptors) for place in hidden}
    return {git.ATTRIBUTES: _data(git.attributes(), git.ATTRIBUTES, descriptors), **empty}


def _data(text: bytes, place: Path, descriptors: "_Descriptors") -> list[str]:
    return ["--ro-bind-data", descriptors.kept(_file(text)), str(place)]


class _Descriptors(list[int]):
    """Descriptors that are closed with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def kept(self, descriptor: int) -> str:
        """The number, as an argument."""
        self.append(descriptor)
        self._stack.callback(os.close, descriptor)
        return str(descriptor)
