"""What is mounted in the sandbox, and where."""

import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from typing import NamedTuple

from modeshift.sandbox.scan import Scan
from modeshift.tools.processes.background import Calling
from modeshift.tools.processes.sandboxes import SandboxService
from modeshift.tools.workspace.opening import is_named, list_above, opened_folder

MAX_MOUNTS = 500
REPOSITORY_MOUNTS = 7
ROOT = "."


class Protection(NamedTuple):
    """What is protected in a workspace: paths relative to ``root``, its folder."""

    root: Path
    hidden: set[str]
    read_only: set[str]
    repositories: set[str]
    linked: set[str]
    hidden_folders: set[str]
    """Folders of ``hidden`` that are hidden whole; ``ROOT`` where nothing less is enough."""
    read_only_folders: set[str]
    plain: set[str]
    """The names in the workspace itself that neither are nor hold anything to protect."""
    patterns: tuple[str, ...]
    """As those of ``Scan``."""


def choose_protection(findings: Scan) -> Protection:
    """What to hide and make read-only; whole folders where there would be too many mounts."""
    hidden_folders = choose_folders(dict.fromkeys(findings.secrets, 1), findings.sizes)
    hidden = hidden_folders | leave_out(findings.secrets, hidden_folders)
    steering = leave_out(findings.steering, hidden_folders)
    repositories = leave_out(findings.repositories, hidden_folders)
    mounts = dict.fromkeys(steering - hidden, 1)
    mounts |= dict.fromkeys(repositories, REPOSITORY_MOUNTS)
    read_only_folders = choose_folders(mounts, findings.sizes)
    protected = findings.secrets | findings.steering | findings.repositories
    return Protection(
        findings.root,
        hidden,
        read_only_folders | leave_out(steering, read_only_folders),
        leave_out(repositories, read_only_folders),
        leave_out(findings.linked, hidden_folders | read_only_folders),
        hidden_folders,
        read_only_folders,
        findings.top - {path.partition("/")[0] for path in protected},
        findings.patterns,
    )


def leave_out(paths: Iterable[str], folders: set[str]) -> set[str]:
    """The paths without the folders and what lies in them."""
    if ROOT in folders:
        return set()
    return {path for path in paths if path not in folders and folders.isdisjoint(list_above(path))}


def choose_folders(mounts: Mapping[str, int], sizes: Mapping[str, int]) -> set[str]:
    """The folders to close as a whole: none, unless there would be too many mounts.

    ``mounts`` says how many each path takes; each folder above one takes another. ``sizes`` says
    how many entries each folder has: those are closed first that save the most mounts for
    the fewest entries.
    """
    above = {folder for path in mounts for folder in list_above(path)}
    count = sum(mounts.values()) + len(above)
    if count <= MAX_MOUNTS:
        return set()
    saved = _sum_below(above, [*mounts.items(), *((folder, 1) for folder in above)])
    entries = _sum_below(above, [(f"{folder}/", size) for folder, size in sizes.items()])
    closed: set[str] = set()
    for folder in sorted(above, key=lambda folder: (entries[folder] / saved[folder], folder)):
        if count <= MAX_MOUNTS:
            break
        more = saved[folder]
        if more and closed.isdisjoint(list_above(folder)):
            closed.add(folder)
            count -= more
            for other in list_above(folder):  # closing it as well would save that much less
                saved[other] -= more
    if count > MAX_MOUNTS:
        return {ROOT}
    return {folder for folder in closed if closed.isdisjoint(list_above(folder))}


def _sum_below(folders: set[str], counts: Iterable[tuple[str, int]]) -> Counter[str]:
    sums = Counter[str]()
    for path, count in counts:
        for folder in folders.intersection(list_above(path)):
            sums[folder] += count
    return sums


ROOM = {"/tmp": 1 << 30, "/var/tmp": 1 << 28, "/dev/shm": 1 << 28}  # noqa: S108
"""Bytes for files of the command's own, in new folders."""
SECRETS_AT_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".vault-token"),
    *(".netrc", ".git-credentials", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".env"),
    *(".config/git/credentials", ".config/gcloud", ".config/gh", ".config/op", ".config/rclone"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials"),
    *(".terraform.d", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".thunderbird"),
    *(".claude", ".codex", ".gemini", ".config/github-copilot", ".config/pip", ".pip", ".condarc"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history"),
)
GIT_FOLDERS = ("hooks", "info", "modules", "worktrees")
GIT_READ_ONLY = ("config", "config.worktree", *GIT_FOLDERS)
"""In a ``.git``: what makes git run programs."""

Mounts = dict[Path, list[str]]
"""bubblewrap's options for what is mounted at a path."""


PROGRAMS = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libx32"),
    *("usr", "etc", "opt", "nix", "gnu", "snap"),
)
"""Where a machine has its programs and their settings."""


def mount_machine(
    *,
    has_network: bool,
    can_bound_tmp: bool,
    hidden: Iterable[Path],
    has_only_programs: bool = False,
) -> Mounts:
    """The machine, read-only, without the secrets at home and what else is to be hidden.

    If it ``has_only_programs``, no home folder is there, nor another user's files.
    """
    mounts: Mounts = {
        **(_mount_programs() if has_only_programs else {Path("/"): ["--ro-bind", "/", "/"]}),
        Path("/dev"): ["--dev", "/dev"],
        Path("/proc"): ["--proc", "/proc"],
        Path(os.path.realpath("/run")): ["--tmpfs", "/run"],  # where services listen
    }
    for name, size in ROOM.items():
        folder = os.path.realpath(name)
        bound = ["--size", str(size)] if can_bound_tmp else []
        mounts[Path(folder)] = ["--perms", "1777", *bound, "--tmpfs", folder]
    if has_network:
        resolver = os.path.realpath("/etc/resolv.conf")  # often in /run
        mounts[Path(resolver)] = ["--ro-bind-try", resolver, resolver]
    home = Path.home()
    secrets = [home / name for name in SECRETS_AT_HOME if os.path.lexists(f"{home}/{name}")]
    return mounts | _hide([*secrets, *hidden], mounts)


def _mount_programs() -> Mounts:
    mounts: Mounts = {Path("/"): ["--tmpfs", "/"]}
    for path in (Path("/", name) for name in PROGRAMS):
        if path.is_symlink():
            mounts[path] = ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            mounts[path] = ["--ro-bind", str(path), str(path)]
    home = Path(os.path.realpath(Path.home()))
    if home not in mounts and not mounts.keys().isdisjoint(home.parents):
        mounts[home] = ["--tmpfs", str(home)]
    return mounts


def mount_workspace(
    machine: Mounts, protection: Protection, keep: Callable[[int], str], calling: Calling
) -> Mounts:
    """The mounts with the workspace; ``keep`` names a descriptor. Raises ``OSError``."""
    root, is_writable, only = protection.root, calling.edits_freely, calling.writable
    mounts = machine | _mount_root(protection, is_writable=is_writable and only is None)
    above = _keep_folders_above(protection) if is_writable else {}
    if only is None:
        mounts |= above
    # Not an empty one: for git what was in it would be deleted, and committed as such.
    closed = ("--perms", "0000", "--tmpfs")
    hidden = _hide((root / path for path in protection.hidden), mounts, closed)
    # A link that is called like a secret may lead to any folder: /usr, say.
    mounts |= {
        path: option
        for path, option in hidden.items()
        if "--tmpfs" not in option or path.is_relative_to(root)
    }
    if only is not None and is_writable:
        mounts |= _open_only(protection, only, keep)
        inside = (path for path in above if is_named(only, str(path.relative_to(root))))
        mounts |= {path: above[path] for path in inside if path not in mounts}
    for path, option in _protect(protection) if is_writable else ():
        if root / path not in mounts and (only is None or is_named(only, path)):
            mounts[root / path] = [option, keep(_open_unlinked(root, path)), str(root / path)]
    return mounts


def show_needed(service: SandboxService, mounts: Mounts) -> tuple[Mounts, set[str]]:
    """Read-only mounts of what it names in folders that are new; the folders that hide the rest."""
    program = shutil.which(service.command[0], path=service.environment.get("PATH"))
    variables = (part for value in service.environment.values() for part in value.split(":"))
    shown: Mounts = {}
    hidden = set[str]()
    for path in _follow(program or "", *service.command[1:], str(service.folder), *variables):
        place = path if path.is_dir() else path.parent
        if place.name in ("bin", ".bin"):  # of an environment, or of installed packages
            place = place.parent
        place = path if place in mounts else place
        over = next(folder for folder in (place, *place.parents) if folder in mounts)
        if place != over and str(over) in map(os.path.realpath, ROOM):
            shown[place] = ["--ro-bind", str(place), str(place)]
        elif "/dev/null" in mounts[over] or (place != over and "--tmpfs" in mounts[over]):
            hidden.add(str(over))
    return shown, hidden


def _follow(*names: str) -> Iterator[Path]:
    """The paths that exist, made absolute, and what they lead to, each by its real folder."""
    for name in names:
        if name.startswith("/") and os.path.lexists(name):
            for path in (Path(os.path.normpath(name)), Path(os.path.realpath(name))):
                yield Path(os.path.realpath(path.parent), path.name)


def list_options(mounts: Mounts) -> Iterator[str]:
    """All options, in an order that works."""
    # Parents first: what is mounted later hides what is below it.
    for path in sorted(mounts, key=lambda path: path.parts):
        yield from mounts[path]
    # At last, for mounts have been made in them. In /proc/sys root could change the machine.
    for path, option in mounts.items():
        if option[0] in ("--tmpfs", "--dev", "--proc") or "0000" in option:
            yield from ("--remount-ro", str(path))


def _mount_root(protection: Protection, *, is_writable: bool) -> Mounts:
    """The workspace itself; where it is closed as a whole, what is plain in it is mounted."""
    root = protection.root
    bind = "--bind" if is_writable else "--ro-bind"
    if ROOT in protection.hidden_folders:
        mount = ["--tmpfs", str(root)]
    elif ROOT in protection.read_only_folders and is_writable:
        mount = ["--ro-bind", str(root), str(root)]
    else:
        return {root: [bind, str(root), str(root)]}
    plain = [root / name for name in sorted(protection.plain)[:MAX_MOUNTS]]
    return {root: mount} | {path: [bind, str(path), str(path)] for path in plain}


def _keep_folders_above(protection: Protection) -> Mounts:
    """Mount the folders above too, as a mount cannot be renamed or moved with its folder."""
    protected = (*protection.hidden, *protection.read_only, *protection.repositories)
    folders = {folder for path in protected for folder in list_above(path)}
    # What is in a folder that is closed stays where it is.
    paths = (protection.root / name for name in leave_out(folders, protection.read_only))
    return {path: ["--bind", str(path), str(path)] for path in paths}


def _open_only(protection: Protection, only: Iterable[str], keep: Callable[[int], str]) -> Mounts:
    """Writable mounts of what is there of these, and is neither protected nor in what is."""
    root, taken = protection.root, protection.hidden | protection.read_only | protection.linked
    is_closed = ROOT in protection.hidden_folders | protection.read_only_folders
    mounts: Mounts = {}
    for name in only:
        path = name.removesuffix("/")
        shut = taken & {path, *list_above(path)} or protection.repositories & {*list_above(path)}
        if shut or (is_closed and path.partition("/")[0] not in protection.plain):
            continue
        with suppress(OSError):  # it is not there, or has become a link
            opened = keep(_open_unlinked(root, path))
            mounts[root / path] = ["--bind-fd", opened, str(root / path)]
    return mounts


def _protect(protection: Protection) -> Iterator[tuple[str, str]]:
    """Paths in the workspace, and the option to mount each."""
    root = protection.root
    for path in protection.read_only | protection.linked:
        if path != ROOT and not (root / path).is_symlink():
            yield path, "--ro-bind-fd"
    for repository in protection.repositories:
        yield repository, "--bind-fd"  # so that it cannot be renamed, and another one be made
        # Those that git would use are made: a missing one cannot be protected by a mount.
        with opened_folder(root, repository.split("/")) as folder:
            for name in GIT_FOLDERS:
                with suppress(OSError):  # it is there, as whatever, or may not be made
                    os.mkdir(name, dir_fd=folder)
        for name in GIT_READ_ONLY:
            path = f"{repository}/{name}"
            if os.path.lexists(root / path) and not (root / path).is_symlink():
                yield path, "--ro-bind-fd"


def _open_unlinked(root: Path, path: str) -> int:
    """A descriptor of what is there, which must not have become a link by now."""
    *folders, name = path.split("/")
    with opened_folder(root, folders) as folder:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(ELOOP, "it has become a link", path)
    return descriptor


def _hide(paths: Iterable[Path], mounts: Mounts, folder: Sequence[str] = ("--tmpfs",)) -> Mounts:
    """Mounts that hide what the paths lead to, never over or around other mounts."""
    taken = {path for mount in mounts for path in (mount, *mount.parents)}
    hidden: Mounts = {}
    for candidate in paths:
        try:
            path = candidate.resolve(strict=True)
            is_folder = path.is_dir()
        except (OSError, RuntimeError):  # not there, out of reach, links in a circle
            continue
        if path not in taken:
            hidden[path] = [*(folder if is_folder else ("--ro-bind", "/dev/null")), str(path)]
    return hidden
