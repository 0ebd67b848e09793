"""``EditorFiles``: files as the editor names them, read and written through it."""

import asyncio
import os
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from acp import RequestError, schema
from pydantic import ValidationError

from modeshift.editor.transport import Editor
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_text import is_plain, to_one_line
from modeshift.tools.servers import Server

McpServer = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


def take_servers(listed: Sequence[McpServer]) -> tuple[tuple[Server, ...], list[str]]:
    """The editor's servers that can be started; the names of the others, with why they cannot.

    The editor's user has configured them, so they are trusted; they are not stored.
    """
    servers: dict[str, Server] = {}
    refused: list[str] = []
    for server in listed:
        name = server.name.strip()
        if not name or not is_plain(name) or name in servers:
            refused.append(f"{_show(server)} (its name is not one line of its own)")
        elif isinstance(server, schema.McpServerStdio):
            env = {variable.name: variable.value for variable in server.env}
            servers[name] = Server(
                name=name,
                origin="editor",
                command=server.command,
                args=tuple(server.args),
                env=env,
                network=True,
            )
        elif isinstance(server, schema.HttpMcpServer):
            headers = {header.name: header.value for header in server.headers}
            servers[name] = Server(name=name, origin="editor", url=server.url, headers=headers)
        else:
            refused.append(f"{_show(server)} (the transport {server.type!r} is not supported)")
    return tuple(servers.values()), refused


def _show(server: McpServer) -> str:
    return f"'{to_one_line(server.name, 100)}'"


SECONDS = 15
T = TypeVar("T")


@dataclass(frozen=True)
class Folder:
    """The workspace's two names: an editor may have opened it through a link."""

    root: Path
    """The folder as the workspace names it, links resolved."""
    named: Path
    """The folder as the editor names it."""

    def file(self, name: str | Path) -> Path:
        """The path by which the editor knows a file: by another it would not find its buffer.

        The real path, if the link leads elsewhere by now.
        """
        path, real = self.named / name, self.root / name
        return path if os.path.realpath(path) == str(real) else real

    def relative(self, path: Path) -> Path:
        """A path from the editor as the agent names it: relative, if in the workspace."""
        for folder in (self.named, self.root):
            if path.is_relative_to(folder):
                return path.relative_to(folder)
        return path


def describe_refusal(error: Exception) -> str:
    """The editor's own words, which the protocol puts into ``data``."""
    data = getattr(error, "data", None)
    if isinstance(data, dict):
        data = next((data[key] for key in ("details", "message", "error") if key in data), data)
    return to_one_line(str(error) if data is None else f"{error}: {data}")


class EditorFiles:
    """The ``Buffers`` of one turn: once it ends, no request to the editor is waited for."""

    def __init__(self, editor: Editor, session_id: str, folder: Folder) -> None:
        self._client = editor.client
        self._id = session_id
        self._folder = folder
        self._loop = asyncio.get_running_loop()
        self._requests = set[Future[Any]]()
        self._is_closed = False
        offered = editor.offered.fs
        self.reads = bool(offered and offered.read_text_file)
        self.writes = bool(offered and offered.write_text_file)

    def read(self, file: Path) -> str:
        """The text as the editor has it. Blocks: call it in a thread."""
        request = self._client.read_text_file(session_id=self._id, path=self._name(file))
        return self._wait(request, f"{file.name!r} cannot be read in the editor").content

    def write(self, file: Path, text: str) -> None:
        """Have the editor write and save the file. Blocks, like ``read``."""
        request = self._client.write_text_file(
            session_id=self._id, path=self._name(file), content=text
        )
        self._wait(request, f"{file.name!r} cannot be written in the editor")

    def close(self) -> None:
        """Stop waiting for the editor."""
        self._is_closed = True
        for future in list(self._requests):
            future.cancel()

    def _name(self, file: Path) -> str:
        return str(self._folder.file(file.relative_to(self._folder.root)))

    def _wait(self, request: Coroutine[object, object, T], problem: str) -> T:
        future = asyncio.run_coroutine_threadsafe(request, self._loop)
        self._requests.add(future)
        if self._is_closed:
            future.cancel()
        try:
            return future.result(SECONDS)
        except TimeoutError:
            future.cancel()
            raise ToolFailedError(f"{problem}: no answer in {SECONDS} s") from None
        except (RequestError, ValidationError, ConnectionError) as error:
            raise ToolFailedError(f"{problem}: {describe_refusal(error)}") from error
        except CancelledError:
            raise ToolFailedError(f"{problem}: the turn has ended") from None
        finally:
            self._requests.discard(future)
