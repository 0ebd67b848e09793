"""``Bubblewrap``: the program on this machine, and how it is told to run a command.

The command gets namespaces of its own for processes, IPC, users and the network, and a
read-only file system but for a private ``/tmp`` and, where it may, the workspace. What looks like
a secret is hidden. The kernel enforces it: no text of a command is looked at.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from modeshift.sandbox import git, seccomp
from modeshift.sandbox.mounts import (
    Mounts,
    Protection,
    choose_protection,
    list_options,
    mount_machine,
    mount_workspace,
    show_needed,
)
from modeshift.sandbox.scan import Scan
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.process import NO_BYTE_CODE, Program
from modeshift.tools.processes.sandboxes import SandboxOptions, SandboxService

TRY_SECONDS = 30
CACHES = {  # the home folder is read-only, too
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108
    "npm_config_cache": "/tmp/.npm",  # noqa: S108
    "TMPDIR": "/tmp",  # noqa: S108
    **NO_BYTE_CODE,
}


@dataclass(frozen=True)
class Bubblewrap:
    """The program, as it is on this machine."""

    program: str = ""
    version: str = ""
    problem: str = ""
    """Why it cannot be used; empty where it can."""
    can_bound_tmp: bool = False

    def build_program(
        self,
        options: SandboxOptions,
        protection: Protection,
        line: str,
        folder: Path,
        calling: Calling,
        service: SandboxService | None = None,
    ) -> Program:
        """What to start to run the shell's ``line`` in a folder. Blocks; raises ``OSError``.

        The workspace can be changed where ``calling`` edits freely, but for what is protected.
        A command that is closed off sees beside it only the machine's programs.
        A service's variables are not bubblewrap's own: with LD_PRELOAD it would load anything.
        """
        has_children = not calling.is_read_only
        if calling.is_closed_off:
            options, calling = _close_off(options, calling)
        descriptors: list[int] = []
        with ExitStack() as stack:

            def keep(descriptor: int) -> str:
                """Pass it to bubblewrap; gives its number as an argument."""
                descriptors.append(descriptor)
                stack.callback(os.close, descriptor)
                return str(descriptor)

            arguments = [
                self.program,
                *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
                *("--cap-drop", "ALL"),
            ]
            if options.has_network:
                arguments.append("--share-net")
            if seccomp.has_filter():
                filtered = seccomp.build_filter(
                    has_sockets=options.has_network, has_children=has_children
                )
                arguments += ["--seccomp", keep(_write_file(filtered))]
            machine = mount_machine(
                has_network=options.has_network,
                can_bound_tmp=self.can_bound_tmp,
                hidden=options.hidden,
                has_only_programs=calling.is_closed_off,
            )
            mounts = mount_workspace(machine, protection, keep, calling)
            if git.shows_changes(line):
                mounts |= _mount_for_git(protection, mounts, keep)
            lacks = ""
            if service is not None:
                shown, hidden = show_needed(service, mounts)
                mounts, lacks = mounts | shown, " and ".join(sorted(hidden))
            words = [*list_options(mounts)]
            for name, value in (service.environment if service else {}).items():
                words += ["--setenv", name, value]
            if any("\0" in word for word in words):
                raise OSError("embedded null byte")
            # In a file: they may be more than a command line takes, and everybody sees that.
            content = b"".join(os.fsencode(f"{word}\0") for word in words)
            arguments += ["--args", keep(_write_file(content)), "--chdir", str(folder)]
            script = f"{_HOLD_CHILDREN}; {line}" if has_children else f"exec {line}"
            arguments += ["--", "/bin/sh", "-c", script]
            git_environment = git.build_git_environment(
                line, protection.root, is_read_only=calling.is_read_only
            )
            environment = {**git_environment, **CACHES}
            stack.pop_all()
        return Program(arguments, environment, descriptors=tuple(descriptors), lacks=lacks)


_HOLD_CHILDREN = "ulimit -u 4096 2>/dev/null || ulimit -p 4096 2>/dev/null"
"""The kernel counts processes and threads of this sandbox alone, and none of root's: ours are
counted from outside, which one that doubles outruns. dash has another letter for it."""


def _close_off(options: SandboxOptions, calling: Calling) -> tuple[SandboxOptions, Calling]:
    """Shut network and workspace, whatever is set; raises ``OSError`` without a filter."""
    if not seccomp.has_filter():
        raise OSError("there is no filter of system calls for this machine")
    return options._replace(has_network=False), replace(calling, edits_freely=False)


@cache
def find_bubblewrap() -> Bubblewrap:
    """Look for it and try it, once per process. Blocks."""
    program = shutil.which("bwrap")
    if program is None:
        return Bubblewrap(problem="bubblewrap is not installed (bwrap; Linux only)")
    version, known = (_read_output([program, option]) for option in ("--version", "--help"))
    wrapper = Bubblewrap(program, version.strip(), can_bound_tmp="--size" in known)
    if "--ro-bind-fd" not in known:
        return replace(wrapper, problem=f"{wrapper.version} is too old: it has no --ro-bind-fd")
    somewhere = choose_protection(Scan(Path("/usr")))
    tried = wrapper.build_program(SandboxOptions(), somewhere, "true", Path("/usr"), Calling())
    if problem := try_program(tried):
        return replace(wrapper, problem=f"bubblewrap does not work here: {problem}")
    return wrapper


def try_program(program: Program) -> str:
    """Run it to its end; return why it failed, or nothing. Blocks."""
    try:
        subprocess.run(  # noqa: S603  # not a shell's text
            program.command,
            cwd=program.folder,
            env=program.environment,
            pass_fds=program.descriptors,
            capture_output=True,
            check=True,
            timeout=TRY_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        text: str = error.stderr.decode("utf-8", "replace").strip()
        return text or f"exit code {error.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        program.close()
    return ""


def _read_output(command: list[str]) -> str:
    try:
        completed = subprocess.run(  # noqa: S603  # our own command
            command, capture_output=True, timeout=TRY_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (completed.stdout + completed.stderr).decode("utf-8", "replace")


def _mount_for_git(protection: Protection, mounts: Mounts, keep: Callable[[int], str]) -> Mounts:
    """Git's attributes; and empty files for hidden ones, as git gives up on an unreadable file."""
    contents = {
        path: b""
        for path, option in mounts.items()
        if option[1] == "/dev/null" and path.is_relative_to(protection.root)
    }
    contents[git.ATTRIBUTES] = git.build_attributes(protection.patterns)
    return {
        path: ["--ro-bind-data", keep(_write_file(content)), str(path)]
        for path, content in contents.items()
    }


def _write_file(content: bytes) -> int:
    """A descriptor to read the content from."""
    descriptor = os.memfd_create("modeshift")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
