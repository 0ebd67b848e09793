"""Running rg, whose regular expressions take linear time, within bounds."""

import ctypes
import os
import re
import resource
import stat
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path
from subprocess import PIPE
from threading import Timer
from typing import IO, TypeVar

from modeshift.modes.errors import ToolFailedError
from modeshift.modes.rules.matching import check_glob, path_matches
from modeshift.tools.workspace.opening import find_path, libc

MAX_ALTERNATIVES = 100
_BRACES = re.compile(r"\{([^{}]*)\}")
_PLAIN = re.compile(r"[\w.*?-]+")
T = TypeVar("T")
# One number for all architectures but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH, _NO_NEW_PRIVS = 1, 38
_EXECUTE, _READ_FILE, _READ_FOLDER, _ALL = 1, 4, 8, 0x1FFF


@dataclass(frozen=True)
class Glob:
    """A pattern of ``*``, ``?``, ``**`` and ``{a,b}`` for paths in a folder.

    One without a slash is for names at any depth, as in ``.gitignore``.
    """

    alternatives: tuple[tuple[str, ...], ...]
    """What the braces stand for, each as the patterns of a path's names."""

    @classmethod
    def of(cls, text: str) -> "Glob":
        """The pattern; raises ``ToolFailedError`` for one that does not mean what it seems to."""
        try:
            check_glob(text)
        except ValueError as error:
            raise ToolFailedError(f"glob: {error}") from None
        paths = tuple(tuple(pattern.split("/")) for pattern in _expand(text))
        if text.startswith("!") or any({"", ".", ".."} & set(names) for names in paths):
            raise ToolFailedError(
                f"glob {text!r}: give a path below the folder with '*', '**', '?' or "
                "'{a,b}' in it, such as '*.py' or 'src/**/*.{ts,tsx}'"
            )
        return cls(tuple(names if len(names) > 1 else ("**", *names) for names in paths))

    @property
    def plain_names(self) -> list[str]:
        """Patterns of which the name of each match fits one; none if that is not certain."""
        names = [alternative[-1] for alternative in self.alternatives]
        is_plain = all(_PLAIN.fullmatch(name) and name != "**" for name in names)
        return names if is_plain else []

    @cached_property
    def _last_names(self) -> re.Pattern[str] | None:
        """What the last name of each match fits, checked before the whole; None for any name."""
        names = {alternative[-1] for alternative in self.alternatives}
        return None if "**" in names else re.compile("|".join(map(translate, names)))

    def matches(self, path: str) -> bool:
        """Whether a path in the folder matches."""
        last = self._last_names
        if last is not None and last.fullmatch(path, path.rfind("/") + 1) is None:
            return False
        names = path.split("/")
        return any(path_matches(alternative, names) for alternative in self.alternatives)


def _expand(text: str) -> list[str]:
    """The patterns that braces stand for."""
    waiting, expanded = [text], []
    while waiting:
        pattern = waiting.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            expanded.append(pattern)
        else:
            start, end = braces.span()
            waiting += [pattern[:start] + choice + pattern[end:] for choice in braces[1].split(",")]
        if len(waiting) + len(expanded) > MAX_ALTERNATIVES:
            raise ToolFailedError(
                f"glob {text!r} stands for more than {MAX_ALTERNATIVES} patterns; give a wider one"
            )
    return expanded


EVERY_FILE = Glob((("**",),))


SECONDS = 20
MAX_MEMORY = 1 << 30


def run_ripgrep(
    options: list[str],
    collect: Callable[[IO[bytes]], str],
    seconds: float = SECONDS,
    *,
    folder: int | None = None,
    passed: tuple[int, ...] = (),
) -> tuple[str, str]:
    """Run rg until it ends, or until ``collect`` says why to stop.

    In an open ``folder`` it is confined to that, where the kernel can; ``passed`` are descriptors
    for it. Returns its errors, and why it was stopped. Raises ``ToolFailedError`` where
    it cannot be started.
    """
    try:
        process = _start(options, "/", passed) if folder is None else _start_in(options, folder)
    except (OSError, ValueError) as error:
        raise ToolFailedError(f"cannot search: {error}") from error
    with process:
        if sys.platform == "linux":  # rg keeps a whole line in memory, however long it is
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        assert process.stdout is not None
        assert process.stderr is not None
        timer = Timer(max(seconds, 0), process.kill)
        timer.start()
        try:
            stopped = collect(process.stdout)
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        if stopped:
            process.kill()
        problem = process.stderr.read(2000).decode("utf-8", "replace").strip()
    if process.returncode < 0 and not stopped:
        stopped = f"it took more than {SECONDS} s, or too much memory for one line"
    return problem, stopped


@cache
def can_confine() -> bool:
    """Whether the kernel can confine rg to the folder that it searches; tried once. Blocks."""
    if sys.platform != "linux":
        return False
    try:
        with ExitStack() as stack:
            process = _start(["--version"], "/", readable=list(_open_needed("/", stack)))
        with process:
            process.communicate(timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return False
    return process.returncode == 0  # one that needs libraries cannot read them


def find_version() -> str:
    """The program's name and version; empty where it cannot be run. Blocks."""
    try:
        completed = subprocess.run(  # noqa: S603  # our own command
            [str(program()), "--version"], capture_output=True, check=True, env={}, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return completed.stdout.decode("utf-8", "replace").partition("\n")[0]


def program() -> Path:
    """Where the wheel puts rg."""
    return Path(sysconfig.get_path("scripts"), "rg")


def _start_in(options: list[str], folder: int) -> subprocess.Popen[bytes]:
    path = find_path(folder)
    if not can_confine():
        return _start(options, path)
    with ExitStack() as stack:
        return _start(options, path, readable=[folder, *_open_needed(path, stack)])


def _start(
    options: list[str],
    folder: str,
    passed: tuple[int, ...] = (),
    readable: Iterable[int] | None = None,
) -> subprocess.Popen[bytes]:
    with open(os.devnull, "rb") as nothing:  # here: what is confined cannot open it

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603  # no shell, and no option of the model's
                [str(program()), *options],
                stdin=nothing, stdout=PIPE, stderr=PIPE, pass_fds=passed, cwd=folder, env={},
            )  # fmt: skip

        return start() if readable is None else confine(readable, start)


def _open_needed(folder: str, stack: ExitStack) -> Iterator[int]:
    """The program, and what it reads in the folders above; closed with the stack."""
    names = (".gitignore", ".git/info/exclude")
    above = (parent / name for parent in Path(folder).resolve().parents for name in names)
    for path in (program().resolve(), *above):
        with suppress(OSError):  # most of them are not there
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            yield descriptor


def call_kernel(*arguments: object) -> int:
    """Make a system call, by its number; raises ``OSError``."""
    result = libc().syscall(*arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def confine(readable: Iterable[int], start: Callable[[], T]) -> T:
    """Call ``start`` in a thread that can read only ``readable``; its child processes inherit that.

    ``readable`` are open folders and files. Raises ``OSError``.
    """
    ruleset = struct.pack("=Q", _ALL)
    rules = call_kernel(_CREATE_RULESET, ruleset, len(ruleset), 0)
    try:
        for descriptor in readable:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            allowed = _READ_FILE | (_READ_FOLDER if is_folder else _EXECUTE)
            call_kernel(_ADD_RULE, rules, _BENEATH, struct.pack("=Qi", allowed, descriptor), 0)

        def start_confined() -> T:
            if libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
                raise OSError(ctypes.get_errno(), "no_new_privs")
            call_kernel(_RESTRICT_SELF, rules, 0)
            return start()

        # What binds a thread is never taken off it again: it ends here.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(start_confined).result()
    finally:
        os.close(rules)
