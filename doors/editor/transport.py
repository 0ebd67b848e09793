"""``PipeTransport``: JSON-RPC over the pipes to an editor, one message per line."""

import asyncio
import json
import logging
import os
import sys
from typing import Any, BinaryIO

from acp import RequestError

from doors.editor.request_validation import find_fault, is_response, normalize

MAX_BYTES = 64 * 1024 * 1024
"""Of one message; a longer one is refused, and the connection goes on."""
FLUSH_SECONDS = 1
PARSE_ERROR = -32700

log = logging.getLogger("modeshift")


class PipeTransport:
    """The transport that the SDK reads from and writes to.

    The SDK's own ends the process at a line that is JSON but not an object, such as ``42``,
    ignores a line that is not JSON, and waits forever for an editor that no longer reads.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> dict[str, Any] | None:
        """The next valid message; None at the end. Invalid ones are answered with an error."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as error:
                await self._skip_line(error.consumed)
                problem = f"a message has more than {MAX_BYTES} bytes"
                await self._refuse(RequestError(PARSE_ERROR, problem))
                continue
            if not line.strip():
                continue
            try:
                message = json.loads(line, parse_constant=_reject_constant)
            except (ValueError, RecursionError) as error:
                await self._refuse(RequestError(PARSE_ERROR, f"a line is not JSON: {error}"))
                continue
            fault = find_fault(message, line)
            if fault is None:
                if "id" in message or not message["method"].startswith("$/"):
                    return normalize(message)
            elif not is_response(message):
                await self._refuse(fault, message)
            elif isinstance(message["id"], int):  # the request that it answers has failed
                return {"jsonrpc": "2.0", "id": message["id"], "error": fault.to_error_obj()}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises ``ConnectionError`` when the editor no longer reads."""
        try:
            text = _dump(message)
        except ValueError:  # a number that JSON does not have
            text = _dump(json.loads(_dump(message, allow_nan=True), parse_constant=str))
        try:
            # Many JSON readers refuse a whole line because of one lone surrogate.
            self._writer.write(text.encode("utf-8", "replace") + b"\n")
            await self._writer.drain()
        except ConnectionError:
            self.hang_up()
            raise

    def hang_up(self) -> None:
        """Behave as if the editor had closed the connection."""
        self._reader.feed_eof()

    async def close(self) -> None:
        """Flush what is left, if the editor still reads."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), FLUSH_SECONDS)
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()

    async def _skip_line(self, consumed: int) -> None:
        while True:
            await self._reader.readexactly(consumed)
            try:
                await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                consumed = error.consumed
            except asyncio.IncompleteReadError:
                return
            else:
                return

    async def _refuse(self, error: RequestError, message: Any = None) -> None:
        log.warning("refused a message: %s", error)
        id = message.get("id") if isinstance(message, dict) else None
        id = id if isinstance(id, str | int) else None
        await self.send({"jsonrpc": "2.0", "id": id, "error": error.to_error_obj()})


def _dump(message: Any, *, allow_nan: bool = False) -> str:
    return json.dumps(
        message, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=allow_nan
    )


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


async def connect_pipes(incoming: BinaryIO, outgoing: BinaryIO) -> PipeTransport:
    """A transport over two pipes or sockets; raises ``ValueError`` for anything else."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    # A reader's protocol, though nothing is read: it notices when the other end is gone.
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    pipe, _ = await loop.connect_write_pipe(lambda: protocol, outgoing)
    return PipeTransport(reader, asyncio.StreamWriter(pipe, protocol, None, loop))


def take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Keep standard input and output for the protocol alone.

    Whatever else is printed, by a library or a child process, goes to standard error: one
    stray line among the messages would end the connection.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb", buffering=0), os.fdopen(outgoing, "wb", buffering=0)
