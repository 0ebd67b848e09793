"""``UndoLog``: what files held before a thread's calls changed them; a ``CallRecord`` notes it.

A folder for each thread, with contents by their digests and with lines of JSON, for its owner's
eyes alone. What ignore rules hide, and what looks like a secret, is not in it.
"""

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from modeshift.modes.errors import StorageError, ToolFailedError
from modeshift.modes.rules.files import DEPENDENCIES, is_secret
from modeshift.storage.kept_threads import KeptThreads
from modeshift.tools.workspace.search import find_files

MAX_FILE, MAX_TREE, MAX_THREAD = 1 << 20, 32 << 20, 64 << 20
"""Bytes that are kept of a file, of a workspace before a command, and of a thread."""
MIN_FILE = 1 << 13
MAX_LOOKED = 10_000
"""Files that are looked at before and after each command, some 10 microseconds for each."""
SECONDS_TOO_LARGE = 60
"""How long a workspace with more is not looked at again."""
TOO_LARGE = "it, or all that there is, is too large to be kept"
UNSEEN = "what it changed is not known"
HIDDEN = "it may have been there before, where ignore rules hid it"
TICK = 0.02
"""Seconds within which a file may change twice and look as if it had changed once."""
PERMISSIONS = 0o1777
OTHER = "no plain file"
"""In the place of a digest."""
Held = tuple[str | None, int | None]
"""The digest of what is at a path, None for nothing; its permissions, None for any."""
Signature = tuple[int | None, ...]
"""Changes with a file: its size first, its permissions last."""
GONE: Signature = (None,)
Tree = dict[str, tuple[Signature, str | None]]
"""By path, the signature, and the digest, None if the contents are not kept."""


class KeptFile(NamedTuple):
    """A file before a call and after it; with the reason why it cannot go back, if there is one."""

    path: str
    before: Held
    after: Held
    problem: str = ""


@dataclass
class KeptCall:
    """A call that may have changed something."""

    id: str
    number: int
    workspace: str = ""
    what: str = ""
    stays: str = ""
    """Why what it did cannot go back; empty if it can, file by file."""
    back: str | None = None
    """Of an undo, the checkpoint that was left."""
    at: float = 0
    files: dict[str, KeptFile] = field(default_factory=dict)


class UndoLog:
    """The log of all threads of this machine; its methods block, and raise ``StorageError``."""

    def __init__(self, folder: Path, days: int) -> None:
        self.days, self.folder = days, folder.resolve()
        self.trees = dict[str, Tree]()
        """By thread, the files as its last command has left them."""
        self.too_large = dict[Path, float]()
        """When workspaces had more files than are looked at, by ``time.monotonic``."""
        self._used = dict[str, int]()
        KeptThreads.beside.add(self)

    def _get_folder(self, thread: str) -> Path:
        return self.folder / sha256(thread.encode()).hexdigest()[:32]

    @contextmanager
    def _opened(self, thread: str) -> Iterator[Path]:
        folder = self._get_folder(thread)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            yield folder
        except OSError as error:
            problem = f"what undo needs cannot be kept: {error}; UNDO_DAYS=0 turns undo off"
            raise StorageError(problem) from error

    def mark(self, thread: str) -> str:
        """Names the thread's folder, and how many calls it has; another one has another id."""
        with self._opened(thread) as folder:
            if not (id := folder / "id").exists():
                _append(id, uuid4().hex.encode(), is_synced=False)
            id.touch()
            return f"{id.read_text()} {thread} {len(_read(folder))}"

    def keep(self, thread: str, data: bytes, *, is_synced: bool = True) -> str:
        """Keep the contents of a file; why they are not kept, empty if they are."""
        with self._opened(thread) as folder:
            file = folder / (digest := sha256(data).hexdigest())
            # What is written in a hurry may have become empty, by a power failure.
            if file.exists() and not (is_synced and self.find(thread, digest) is None):
                return ""
            if thread not in self._used:
                self._used[thread] = sum(entry.stat().st_size for entry in os.scandir(folder))
            if len(data) > MAX_FILE or self._used[thread] + len(data) > MAX_THREAD:
                return TOO_LARGE
            self._used[thread] += len(data)
            _append(new := folder / f".{uuid4().hex}", data, is_synced=is_synced)
            new.rename(file)
            return ""

    def find(self, thread: str, digest: str | None) -> bytes | None:
        """The contents with this digest; None if they are not kept."""
        with self._opened(thread) as folder, suppress(FileNotFoundError):
            data = (folder / str(digest)).read_bytes()
            return data if sha256(data).hexdigest() == digest else None
        return None

    def write(self, thread: str, *lines: Mapping[str, object]) -> None:
        """Add lines, each with the ``call`` it is of: with a ``file``, or with its other fields."""
        with self._opened(thread) as folder:
            # A line that a crash has cut off stays by itself: nothing had been changed by then.
            text = "".join(f"\n{json.dumps({'at': time.time(), **line})}" for line in lines)
            _append(folder / "calls", text.encode(), is_synced=True)

    def list_calls(self, thread: str, since: int = 0) -> list[KeptCall]:
        """A thread's calls in their order, without the first ``since``."""
        with self._opened(thread) as folder:
            return _read(folder)[since:]

    def list_others(self, thread: str, workspace: str, since: float) -> set[str]:
        """The paths that other threads have changed in the workspace since then."""
        with self._opened(thread) as own:
            files = (file for file in self.folder.glob("*/calls") if file.parent != own)
            others = (_read(file.parent) for file in files if file.stat().st_mtime >= since)
            calls = (call for calls in others for call in calls if call.at >= since)
            return {path for call in calls if call.workspace == workspace for path in call.files}

    def clean(self) -> None:
        """Forget the threads in which no turn has begun for ``days`` days."""
        for id in self.folder.glob("*/id"):
            if time.time() - id.stat().st_mtime > self.days * 24 * 60 * 60:
                shutil.rmtree(id.parent, ignore_errors=True)

    def forget(self, thread: str) -> None:
        """Forget all of a thread."""
        if self._get_folder(thread).exists():
            with self._opened(thread) as folder:
                shutil.rmtree(folder)


def _read(folder: Path) -> list[KeptCall]:
    calls, file = dict[str, KeptCall](), folder / "calls"
    for text in file.read_bytes().split(b"\n") if file.exists() else ():
        with suppress(ValueError):
            line = json.loads(text)
            call = calls.setdefault(id := line.pop("call"), KeptCall(id, len(calls)))
            if "file" in line:
                path, before, after, problem = line.pop("file")
                first = call.files.get(path, KeptFile(path, (*before,), (*after,)))
                call.files[path] = first._replace(after=(*after,), problem=problem)
            vars(call).update(line)
    return list(calls.values())


def _append(file: Path, data: bytes, *, is_synced: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(file, flags, 0o600), "ab") as opened:
        opened.write(data)
        opened.flush()
        if is_synced:
            os.fsync(opened.fileno())


class CallRecord:
    """Notes what a call changes, before it does; blocks, and raises ``StorageError``."""

    def __init__(self, log: UndoLog, workspace: Any, thread: str, what: str) -> None:
        """``workspace`` is a ``Workspace``, which itself writes into the record."""
        self._log, self._workspace, self._thread = log, workspace, thread
        self._first = {"workspace": str(workspace.root), "what": what}
        self._root = f"{workspace.root}/"
        self.id = uuid4().hex[:12]
        self._before: Tree | None = None
        self._began = 0.0
        self._edited = dict[str, Signature]()

    def note(self, *files: KeptFile, **fields: object) -> None:
        """Note what the call does to files, and other fields of ``KeptCall``."""
        lines = [{"call": self.id, "file": file} for file in files]
        self._log.write(self._thread, {"call": self.id, **self._first, **fields}, *lines)
        self._first = {}

    def note_write(self, path: str, before: bytes | None, mode: int | None, after: str) -> None:
        """Note that a file is about to be written, and will have the digest ``after``."""
        digest, problem = None, "it may hold secrets" if is_secret(path) else ""
        if before is not None:
            digest = sha256(before).hexdigest()
            problem = problem or self._log.keep(self._thread, before)
        self.note(KeptFile(path, (digest, mode), (after, mode), problem))

    def begin(self, stays: str, paths: Sequence[str], *, looks: bool) -> None:
        """Note what ``stays`` of the call; see how the files are: all, or those that it edits."""
        if stays or looks:
            self.note(stays=UNSEEN if looks else stays)
        self._edited = {path: self._find_signature(path) for path in paths}
        if looks:
            with suppress(ToolFailedError):  # too many files: it runs all the same
                self._before, self._began = self._look(), time.time()
                time.sleep(TICK)  # or the command could change a file without a trace

    def end(self, stays: str) -> None:
        """Note what has changed since; where that fails, it stays noted as not known."""
        with suppress(StorageError, ToolFailedError):
            if self._before is not None:
                after, root = self._look(), str(self._workspace.root)
                others = self._log.list_others(self._thread, root, self._began)
                self.note(*self._compare(self._before, after, others), stays=stays)
            elif self._first and any(
                self._find_signature(path) != held for path, held in self._edited.items()
            ):
                self.note(stays=UNSEEN)  # a tool of one's own writes past the workspace

    def _compare(self, before: Tree, after: Tree, others: set[str]) -> Iterator[KeptFile]:
        seen = {signature[3] for signature, _ in before.values() if signature != GONE}
        are_shown = any(  # files by other ignore rules
            path.endswith("ignore") and after.get(path, (GONE,))[0] != signature
            for path, (signature, _) in before.items()
        )
        for path in sorted(before.keys() | after.keys()):
            (old, digest), (new, held) = (tree.get(path, (GONE, None)) for tree in (before, after))
            if old != new:
                was = digest, old[-1]
                now = (held, new[-1]) if held else self._workspace.find_held(path)
                problem = "another thread changed it meanwhile" if path in others else ""
                problem = TOO_LARGE if old != GONE and digest is None else problem
                if new != GONE and new[3] not in seen:
                    is_older = (new[1] or 0) < self._began * 1e9
                    problem = HIDDEN if is_older or (are_shown and old == GONE) else problem
                if was != now or problem:
                    yield KeptFile(path, was, now, problem)

    def _look(self) -> Tree:
        root, too_large = self._workspace.root, self._log.too_large
        if time.monotonic() < too_large.get(root, -inf) + SECONDS_TOO_LARGE:
            raise ToolFailedError("there are too many files")
        with self._workspace.open_for_search(".") as (folder, _):
            names, stopped = find_files(folder, max_count=MAX_LOOKED)
        if stopped:
            too_large[root] = time.monotonic()
            raise ToolFailedError(f"the files cannot be listed: {stopped}")
        known, seen, room = self._log.trees.get(self._thread, {}), Tree(), MAX_TREE
        for path in sorted(names):
            old, digest = known.get(path, (GONE, None))
            signature = self._find_signature(path)
            if signature != old:
                is_others = not DEPENDENCIES.isdisjoint(path.split("/")) or is_secret(path)
                if signature == GONE or is_others or self._workspace.ignores(path):
                    continue
                digest = self._keep(path, room)
            # Each small one takes time, too.
            room -= max(signature[0] or 0, MIN_FILE) if digest else 0
            seen[path] = signature, digest
        self._log.trees[self._thread] = seen
        return seen

    def _find_signature(self, path: str) -> Signature:
        """``GONE`` for what is no file."""
        try:
            now = os.lstat(self._root + path)
        except OSError:
            return GONE
        if not stat.S_ISREG(now.st_mode):
            return GONE
        times, mode = (now.st_mtime_ns, now.st_ctime_ns), now.st_mode & PERMISSIONS
        return (now.st_size, *times, now.st_ino, mode)

    def _keep(self, path: str, room: int) -> str | None:
        try:
            with self._workspace.opened_on_disk(path) as file:
                data = file.read(MAX_FILE + 1)
        except ToolFailedError:
            return None
        if len(data) > room or self._log.keep(self._thread, data, is_synced=False):
            return None
        return sha256(data).hexdigest()


current_record: ContextVar[CallRecord | None] = ContextVar("current_record", default=None)
"""The record of the call that runs; None where nothing is noted."""
