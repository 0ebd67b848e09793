"""``EditorFiles``: text files read and written through the editor, which has them open."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, TypeVar

from acp import RequestError
from acp.interfaces import Client
from acp.schema import FileSystemCapabilities
from pydantic import ValidationError

from doors.editor.folder import Folder
from modes.errors import ToolFailedError
from modes.plain_text import plain

SECONDS = 15
T = TypeVar("T")


class EditorFiles:
    """``Buffers`` of one session, for one turn: what an editor leaves unanswered ends with it."""

    def __init__(
        self,
        client: Client,
        session_id: str,
        offered: FileSystemCapabilities,
        folder: Folder,
    ) -> None:
        self._client = client
        self._id = session_id
        self._folder = folder
        self._loop = asyncio.get_running_loop()
        self._asked = set[Future[Any]]()
        self._is_closed = False
        self.reads = bool(offered.read_text_file)
        self.writes = bool(offered.write_text_file)

    def read(self, file: Path) -> str:
        """The text as the editor has it. Blocks, so not in the event loop."""
        answer = self._client.read_text_file(session_id=self._id, path=self._named(file))
        return self._answer(answer, f"{file.name!r} cannot be read in the editor").content

    def write(self, file: Path, text: str) -> None:
        """Have the editor put it into the file, and save. Blocks, as ``read`` does."""
        answer = self._client.write_text_file(
            session_id=self._id, path=self._named(file), content=text
        )
        self._answer(answer, f"{file.name!r} cannot be written in the editor")

    def _named(self, file: Path) -> str:
        return str(self._folder.file(file.relative_to(self._folder.root)))

    def close(self) -> None:
        """Wait for no answer any more."""
        self._is_closed = True
        for future in list(self._asked):
            future.cancel()

    def _answer(self, asking: Coroutine[Any, Any, T], problem: str) -> T:
        future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        self._asked.add(future)
        if self._is_closed:
            future.cancel()
        try:
            return future.result(SECONDS)
        except TimeoutError:
            future.cancel()
            raise ToolFailedError(f"{problem}: no answer in {SECONDS} s") from None
        except (RequestError, ValidationError, ConnectionError) as error:
            raise ToolFailedError(f"{problem}: {plain(str(error))}") from error
        except CancelledError:
            raise ToolFailedError(f"{problem}: the turn has ended") from None
        finally:
            self._asked.discard(future)
