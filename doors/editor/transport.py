"""``Wire``: JSON-RPC over the pipes to an editor, one message a line."""

import asyncio
import json
import logging
import os
import sys
from typing import Any, BinaryIO

from acp import RequestError

from doors.editor.request_validation import refusal

MAX_BYTES = 64 * 1024 * 1024
"""Of one message; a longer one is refused, and does not end the connection."""
FLUSH_SECONDS = 1
NOT_JSON = -32700
NO_MESSAGE = -32600
BAD_PARAMS = -32602

log = logging.getLogger("modeshift")


class Wire:
    """What the SDK calls a transport.

    Its own ends the process at a line that is JSON and no object, such as ``42``, says nothing
    to a line that is none, and waits for ever for an editor that has gone without reading.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is one; None where there are no more."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as error:
                await self._skip_line(error.consumed)
                await self._refuse(NOT_JSON, f"a message has more than {MAX_BYTES} bytes")
                continue
            if not line.strip():
                continue
            try:
                message = json.loads(line, parse_constant=_no_number)
            except (ValueError, RecursionError) as error:
                await self._refuse(NOT_JSON, f"a line is no JSON: {error}")
                continue
            fault = _fault(message, line)
            if fault is None:
                if "id" in message or not message["method"].startswith("$/"):
                    return _plain(message)
            elif not _is_answer(message):
                await self._refuse(*fault, message)
            elif isinstance(message["id"], int):  # whoever asked waits no more
                refused = RequestError(*fault).to_error_obj()
                return {"jsonrpc": "2.0", "id": message["id"], "error": refused}

    async def send(self, message: dict[str, Any]) -> None:
        """Send it; raises ``ConnectionError`` where nobody reads any more."""
        try:
            text = _dumped(message)
        except ValueError:  # a number that JSON has not
            text = _dumped(json.loads(_dumped(message, allow_nan=True), parse_constant=str))
        try:
            # A lone surrogate is no character: many a JSON reader refuses the whole line.
            self._writer.write(text.encode("utf-8", "replace") + b"\n")
            await self._writer.drain()
        except ConnectionError:
            self.hang_up()
            raise

    def hang_up(self) -> None:
        """As if the editor had closed the connection."""
        self._reader.feed_eof()

    async def close(self) -> None:
        """Say what has not been said, if anybody still reads."""
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

    async def _refuse(self, code: int, problem: str, message: Any = None) -> None:
        log.warning("not understood: %s", problem)
        error = RequestError(code, problem[:300]).to_error_obj()
        id = message.get("id") if isinstance(message, dict) else None
        id = id if isinstance(id, str | int) else None
        await self.send({"jsonrpc": "2.0", "id": id, "error": error})


def _dumped(message: Any, *, allow_nan: bool = False) -> str:
    return json.dumps(
        message, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=allow_nan
    )


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _fault(message: Any, line: bytes) -> tuple[int, str] | None:
    """Why the SDK does not get it, and the code of that; None for a message in order."""
    if problem := _problem(message):
        return NO_MESSAGE, problem
    if b"\\u" in line:
        try:
            json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return NO_MESSAGE, "a text holds half of a character"
        except RecursionError:
            return NO_MESSAGE, "a message is too deep"
    if "method" not in message:
        return None
    lost = refusal(message["method"], message.get("params") or {})
    return None if lost is None else (BAD_PARAMS, lost)


def _problem(message: Any) -> str | None:
    """Why the SDK cannot take it, or None."""
    if not isinstance(message, dict):
        return "a message is an object"
    if "method" not in message:
        has_id = isinstance(message.get("id"), int)
        is_answer = "result" in message or isinstance(message.get("error"), dict)
        return None if has_id and is_answer else "a message has a method, or is an answer to one"
    if not isinstance(message["method"], str):
        return "a method is a text"
    if not isinstance(message.get("params"), dict | None):
        return "params are an object"
    if not isinstance(message.get("id"), str | int | None):
        return "an id is a text or a number"
    return None


def _is_answer(message: Any) -> bool:
    """Whether it is none of ours to answer, though it is broken."""
    return isinstance(message, dict) and "method" not in message and "id" in message


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Without what would mislead the SDK.

    What is in ``_meta`` it puts over the checked parameters, by name. Of an answer that is
    a failure and a result it sees the result, and one with the error null is a failure.
    """
    if "method" not in message:
        message.pop("error" if message.get("error") is None else "result", None)
    elif (params := message.get("params")) is not None:
        params.pop("_meta", None)
        params.pop("field_meta", None)  # its name in Python does as well
    return message


async def stdio(incoming: BinaryIO, outgoing: BinaryIO) -> Wire:
    """Over two pipes or sockets; raises ``ValueError`` for anything else."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
    # The protocol of a reader that reads nothing is one that knows when the other end is gone.
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, outgoing)
    return Wire(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone.

    Whatever else is printed, by a library or a program that is started, goes to standard
    error: one stray line on the way would end the connection.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb", buffering=0), os.fdopen(outgoing, "wb", buffering=0)
