"""``Workspaces``: which folder a thread works in. It is chosen once, and never by the model.

The choice is kept with what the host sets in a thread, so that it is copied and deleted with it,
and every process finds it.
"""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from modeshift.configuration.settings import FOLDER_NAME as NAME
from modeshift.configuration.settings import Settings, name_source
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.mailbox import Mailbox

KEY = "workspace"
"""The workspace's key in the state, and among the settings of a thread."""
ANYBODY = "anybody"
"""The user where no token is asked for."""
CLONE_SECONDS = 600


class Workspaces:
    """Folders below ``WORKSPACES``, by user and name; without that setting all are one."""

    def __init__(self, settings: Settings, mailbox: Mailbox) -> None:
        self._settings = settings
        self._root = settings.workspaces
        self._mailbox = mailbox

    async def enter(self, thread: str, user: str) -> Path:
        """The folder of the user's thread, which keeps the default one if it has none yet.

        Raises ``InvalidInputError`` where its folder is not on this machine.
        """
        if self._root is None or not thread or not self._mailbox.is_kept:
            return self._settings.workspace
        name = await self._get_kept(thread)
        if name is None:
            name = await self.keep(thread, user, None)
        return await asyncio.to_thread(self._open, self._root, name)

    async def find(self, thread: str, user: str) -> Path:
        """The thread's folder, before it is known whose thread it is: makes and keeps nothing."""
        if self._root is None or not self._mailbox.is_kept:
            return self._settings.workspace
        name = await self._get_kept(thread) if thread else None
        folder = self._root / (name or f"{user}/{self._name_default(thread)}")
        is_own = folder.parent == self._root / user
        is_there = is_own and await asyncio.to_thread(_is_folder, folder)
        return folder if is_there else self._settings.workspace

    async def choose(self, thread: str, user: str, workspace: object) -> str:
        """The name ``user/name`` to ``keep``: a workspace of the user, or one to make.

        Raises ``InvalidInputError`` if there is no such workspace.
        """
        if self._root is None:
            raise InvalidInputError("this server has one workspace: WORKSPACES is not set")
        return await asyncio.to_thread(self._choose, self._root, thread, user, workspace)

    async def keep(self, thread: str, user: str, workspace: object) -> str:
        """Choose and keep a workspace, made if it is new; raises as ``choose``, or for a second."""
        name, chosen = await self._get_kept(thread), await self.choose(thread, user, workspace)
        if name not in (None, chosen):
            raise InvalidInputError(f"thread {thread} works in {name!r}, and that does not change")
        if name is None and self._root is not None:
            source = (
                str(workspace) if workspace else next(iter(self._settings.workspaces_from), None)
            )
            await asyncio.to_thread(_make, self._root / chosen, source)
            await self._mailbox.put(thread, {KEY: chosen})
        return chosen

    async def _get_kept(self, thread: str) -> str | None:
        item = await self._mailbox.find(thread, KEY)
        return None if item is None else str(item)

    def _choose(self, root: Path, thread: str, user: str, workspace: object) -> str:
        sources = self._settings.workspaces_from
        own = root / user
        if workspace is None or workspace in sources:
            name = self._name_default(thread, str(workspace) if workspace else None)
            if NAME.fullmatch(name) is None:
                raise InvalidInputError(f"{name!r} is no id of a thread")
        else:
            name = str(workspace)
            is_name = isinstance(workspace, str) and NAME.fullmatch(workspace)
            if not is_name or not _is_folder(own / name):
                folders = sorted(own.iterdir()) if own.is_dir() else []
                known = [*(each.name for each in folders if NAME.fullmatch(each.name)), *sources]
                raise InvalidInputError(
                    f"unknown workspace {workspace!r}; you have: {', '.join(known) or 'none yet'}"
                )
        return f"{user}/{name}"

    def _name_default(self, thread: str, source: str | None = None) -> str:
        if self._settings.workspaces_per == "thread":
            return thread
        return name_source(source or next(iter(self._settings.workspaces_from), None))

    def _open(self, root: Path, name: str) -> Path:
        folder = root / name
        if not _is_folder(folder):  # never made again: what was done in it would seem undone
            raise InvalidInputError(
                f"the workspace {name!r} of this thread is not on this machine, in {root}; bring "
                "it back, or go on in a new thread"
            )
        return folder


def _is_folder(folder: Path) -> bool:
    """Whether it is a folder and no link, which may lead to what is not the user's."""
    return folder.is_dir() and not folder.is_symlink() and not folder.parent.is_symlink()


def _make(folder: Path, source: str | None) -> None:
    """Make the folder whole or not at all: two processes may do so at the same time."""
    if _is_folder(folder):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        if source is not None:
            _clone(source, made)
        try:
            made.rename(folder)
        except OSError:
            if not _is_folder(folder):
                raise
    except OSError as error:
        raise InvalidInputError(f"the workspace cannot be made: {error.strerror}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _clone(source: str, folder: Path) -> None:
    # Without --no-local git would hard-link a folder's objects, or borrow them as that one does.
    command = ["git", "-c", "protocol.ext.allow=never", "clone", "--quiet", "--no-local", "--"]
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    }
    try:
        subprocess.run(  # noqa: S603  # the operator's own address
            [*command, source, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=CLONE_SECONDS,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        reason = to_one_line(str(error.stderr or error), 300)
        raise InvalidInputError(f"{source} cannot be cloned: {reason}") from error
