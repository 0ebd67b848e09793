"""``PipeTransport``: JSON-RPC over the pipes to an editor, one message per line."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities

from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line

FLUSH_SECONDS = 1
NO_LIMIT = sys.maxsize >> 2
"""A message may have any number of bytes: the editor is the user's own process."""
MAX_DETAILS = 2000
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
_OPENING = ("session/new", "session/load", "session/resume", "session/fork")
_EXTENSIONS = {"session/delete": "_session/delete"}
"""Methods that the SDK does not know, with the names by which it passes them on."""

log = logging.getLogger("modeshift")


class Editor(NamedTuple):
    """The other end of the connection."""

    client: Client
    offered: ClientCapabilities
    """What the editor can do."""
    withdraw: Callable[[str], Awaitable[None]]
    """Takes back the question about a call."""
    shows: Collection[str] = ()
    """What the editor can show and the SDK does not know: ``notices``, ``compaction``."""

    @property
    def has_forms(self) -> bool:
        """Whether the editor can ask with a form."""
        return bool(self.offered.elicitation and self.offered.elicitation.form is not None)


class PipeTransport:
    """The transport that the SDK reads from and writes to.

    The SDK's own ends the process at a line that is JSON but not an object, such as ``42``,
    ignores a line that is not JSON, and waits forever for an editor that no longer reads.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._prompts: dict[object, object] = {}
        """The sessions of prompts without an answer yet, by request id."""
        self._questions: dict[str, object] = {}
        """The request ids of questions that may be open, by call id."""
        self.shows: Collection[str] = ()
        """``Editor.shows``, from the editor's first message."""

    async def receive(self) -> dict[str, object] | None:
        """The next message; None at the end. A line that is none, or is refused, gets an error."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            if not line.strip():
                continue
            message: object = None
            try:
                message = self._cancel_prompt(json.loads(line))
                if prepared := prepare_message(message):
                    return prepared
            except (ValueError, RecursionError) as error:
                fault = RequestError(PARSE_ERROR, f"a line is not JSON: {error}")
                await self._refuse(fault, message)
            except RequestError as error:
                await self._refuse(error, message)

    async def send(self, message: dict[str, object]) -> None:
        """Send a message; raises ``ConnectionError`` when the editor no longer reads."""
        if message.get("method") == "_session/update":  # as the SDK sends what it does not know
            message["method"] = "session/update"
        _name_new_files(message)
        _explain_error(message)
        self._note(message)
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

    async def withdraw(self, call: str) -> None:
        """Tell the editor that the question about a call is taken back."""
        if (id := self._questions.pop(call, None)) is not None:
            message = {"method": "$/cancel_request", "params": {"requestId": id}}
            with suppress(ConnectionError):
                await self.send({"jsonrpc": "2.0", **message})

    def _note(self, message: JsonObject) -> None:
        match message:
            case {"method": "session/request_permission", "id": id, "params": params}:
                self._questions[params["toolCall"]["toolCallId"]] = id
            case {"method": "elicitation/create", "id": id, "params": params}:
                self._questions[params["toolCallId"]] = id
            case {"id": id} if "method" not in message:
                self._prompts.pop(id, None)

    def _cancel_prompt(self, message: object) -> object:
        """The message; one that cancels a prompt's request becomes one that cancels its session."""
        match message:
            case {"method": "initialize", "params": {"clientCapabilities": {"session": dict(all)}}}:
                self.shows = {name for name, value in all.items() if isinstance(value, dict)}
            case {"method": "session/prompt", "id": str() | int() as id, "params": dict(params)}:
                self._prompts[id] = params.get("sessionId")
            case {"method": "$/cancel_request", "params": {"requestId": str() | int() as id}}:
                if (session := self._prompts.get(id)) is not None:
                    cancel = {"method": "session/cancel", "params": {"sessionId": session}}
                    return {"jsonrpc": "2.0", **cancel}
        return message

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

    async def _refuse(self, error: RequestError, message: object) -> None:
        log.warning("refused a message: %s", error)
        id = message.get("id") if isinstance(message, dict) else None
        id = id if isinstance(id, str | int) else None
        await self.send({"jsonrpc": "2.0", "id": id, "error": error.to_error_obj()})


def prepare_message(message: object) -> dict[str, object] | None:
    """The message without what would mislead the SDK; None for one to ignore.

    The SDK spreads ``_meta`` over the checked parameters, by name. In a response it looks for a
    result first, also beside an error. Raises ``RequestError`` for what is refused.
    """
    if not isinstance(message, dict):
        raise RequestError(INVALID_REQUEST, "a message must be an object")
    method, params = message.get("method"), message.get("params")
    if "method" not in message and message.keys() & {"result", "error"}:
        if not isinstance(message.get("id"), int):
            return None  # no request of ours
        if (error := message.pop("error", None)) is None:
            return message
        refusal = error if isinstance(error, dict) else {"message": to_one_line(str(error))}
        return {"id": message["id"], "error": refusal}
    if not (isinstance(method, str) and isinstance(params, dict | None)):
        raise RequestError(INVALID_REQUEST, "a method must be a string, and params an object")
    for name in ("_meta", "field_meta"):  # the SDK accepts its Python names as well
        (params or {}).pop(name, None)
    others = {"additionalDirectories", "additional_directories"}
    if method in _OPENING and any((params or {}).get(name) for name in others):
        problem = "additional directories are not supported; cwd is the workspace"
        raise RequestError(INVALID_PARAMS, problem)
    if method.startswith("$/") and "id" not in message:
        return None
    return {**message, "method": _EXTENSIONS.get(method, method)}


def _name_new_files(message: dict[str, object]) -> None:
    """Say of each new file that it has no old text: some editors show nothing of it otherwise.

    The SDK leaves out whatever is None.
    """
    match message.get("params"):
        case {"update": {"content": list(content)}} | {"toolCall": {"content": list(content)}}:
            for block in content:
                if isinstance(block, dict) and block.get("type") == "diff":
                    block.setdefault("oldText", None)


def _explain_error(message: JsonObject) -> None:
    """Say what is wrong in ``details``, too: some editors show nothing else of an error."""
    if (error := message.get("error")) is not None:
        data = error["data"] if isinstance(error["data"], dict | None) else {"data": error["data"]}
        details = f"{error['message']}: {data}" if data else error["message"]
        error["data"] = {"details": to_one_line(details, MAX_DETAILS), **(data or {})}


def _dump(message: object, *, allow_nan: bool = False) -> str:
    return json.dumps(
        message, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=allow_nan
    )


async def connect_pipes(incoming: BinaryIO, outgoing: BinaryIO) -> PipeTransport:
    """A transport over two pipes or sockets; raises ``ValueError`` for anything else."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=NO_LIMIT)
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
