"""``McpSession``: a server that has been started and has listed its tools.

Importing this imports the SDK, which takes a while; ``LoopThread`` does so in the background.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from mcp import types
from mcp.client.client import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

from modeshift.mcp.transports import Failure, build_program, open_http, open_stdio
from modeshift.modes.errors import ToolFailedError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import name_count, to_one_line
from modeshift.tools.network import idempotency_key
from modeshift.tools.processes.sandboxes import Sandbox
from modeshift.tools.servers import Server, ToolDescription
from modeshift.tools.workspace.workspace import Workspace

UNKNOWN = "whether it did anything is unknown"
MAX_TOOLS = 500
"""The most tools of one server."""
SECONDS_TO_ANSWER = 5
"""For the question whether a server that left a call unanswered answers at all."""
SECONDS_TO_LISTEN_AGAIN = 60
_PROBLEM = "modeshift/problem"
IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""The kinds that models take, and how each begins."""
MAX_IMAGE_BYTES = 3_500_000
MAX_IMAGES = 5


class McpSession:
    """The tools of a server that runs, and calls of them."""

    def __init__(self, transport: Any, server: Server, failure: Failure) -> None:
        info = types.Implementation(name="modeshift", version="1")
        self._client = Client(transport, client_info=info, message_handler=self._hear)
        self._server = server
        self._failure = failure
        self._changes = self._changes_read = 0
        """How often it has said that its tools changed, and how often before ``tools`` was read."""
        self.tools: tuple[ToolDescription, ...] = ()

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect until the end of ``stack``, and read ``tools``."""
        await stack.enter_async_context(self._client)
        session = self._client.session
        session.validate_tool_result = _believe  # type: ignore[method-assign,assignment]
        # Private: there is no public way to see a list before the SDK checks it, and refuses all of
        # it for one tool; nor is there an issue upstream.
        dispatcher = session._dispatcher
        send = dispatcher.send_raw_request

        async def send_and_check(method: str, *rest: Any) -> JsonObject:
            result = await send(method, *rest)
            if method == "tools/list" and isinstance(result.get("tools"), list):
                check = partial(_check_tool, self._client.protocol_version, result)
                result["tools"] = list(map(check, result["tools"]))
            return result

        dispatcher.send_raw_request = send_and_check  # type: ignore[assignment,method-assign]
        await self._read_tools()
        listening = asyncio.create_task(self._listen())
        stack.callback(listening.cancel)

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changes += 1

    async def _listen(self) -> None:
        """Ask to hear of changes, as the newest protocol wants; what is lost is not sent again."""
        with suppress(ListenNotSupportedError, MCPError):
            while True:
                with suppress(SubscriptionLost):
                    async with self._client.listen(tools_list_changed=True) as events:
                        async for _ in events:
                            self._changes += 1
                await asyncio.sleep(SECONDS_TO_LISTEN_AGAIN)
                self._changes += 1

    @property
    def is_lost(self) -> bool:
        """Whether it can no longer be used."""
        return self._failure.happened.is_set()

    async def wait_until_lost(self) -> str:
        """Wait until the server cannot be used any more; gives the reason."""
        await self._failure.happened.wait()
        return self._failure.reason

    async def refresh(self) -> None:
        """Read ``tools`` again if they have changed; a server that fails to list them is lost."""
        if self._changes == self._changes_read or self.is_lost:
            return
        try:
            async with asyncio.timeout(min(self._server.timeout, SECONDS_TO_ANSWER)):
                await self._read_tools()
        except Exception as error:  # noqa: BLE001  # whatever it does, and the SDK makes of that
            self._failure.report(f"its changed tools could not be read: {_describe_error(error)}")

    async def _read_tools(self) -> None:
        changes = self._changes
        tools: list[ToolDescription] = []
        cursor: str | None = None
        while len(tools) <= MAX_TOOLS:
            page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
            tools += map(_describe, page.tools)
            cursor = page.next_cursor
            if not page.tools or cursor is None:
                break
        if len(tools) > MAX_TOOLS:
            raise ToolFailedError(f"it has more than {MAX_TOOLS} tools")
        self.tools, self._changes_read = tuple(tools), changes

    async def call(self, tool: str, args: Mapping[str, object]) -> list[JsonObject]:
        """The result of a call; raises ``ToolFailedError``, with what the server said as data."""
        name, seconds = self._server.name, self._server.timeout
        key = idempotency_key.get()
        meta: Any = None if key is None else {"idempotency-key": key}
        try:
            async with asyncio.timeout(seconds):
                result = await self._client.call_tool(tool, dict(args), meta=meta)
        except TimeoutError:
            # The SDK has told it that the call is cancelled.
            ending = "told to stop" if await self._answers() else "ended"
            raise ToolFailedError(
                f"the MCP server {name!r} did not answer within {seconds:g} s and was {ending}; "
                f"{UNKNOWN}"
            ) from None
        except Exception as error:
            await asyncio.sleep(0)  # what ended the connection says more than that it is closed
            if self.is_lost:
                problem = f"the connection to the MCP server {name!r} was lost during the call"
                raise ToolFailedError(f"{problem}; {UNKNOWN}", self._failure.reason) from error
            if isinstance(error, MCPError):
                raise ToolFailedError(f"the MCP server {name!r} refused it", str(error)) from error
            problem = f"the MCP server {name!r} gave no answer of the protocol; {UNKNOWN}"
            raise ToolFailedError(problem, _describe_error(error)) from error
        content = read_content(result)
        if result.is_error:
            text = "\n".join(block["text"] for block in content if block["type"] == "text")
            raise ToolFailedError(f"the MCP server {name!r} could not do it", text)
        return content

    async def _answers(self) -> bool:
        """Whether it answers another request; if not, it is lost. New servers know no ping."""
        try:
            async with asyncio.timeout(min(self._server.timeout, SECONDS_TO_ANSWER)):
                await self._client.list_tools(cache_mode="bypass")
        except Exception:  # noqa: BLE001  # whatever it does, and the SDK makes of that
            self._failure.report(f"it did not answer a call within {self._server.timeout:g} s")
        return not self.is_lost


def _check_tool(version: str, page: JsonObject, tool: Any) -> Any:
    """The tool, or one that says why it cannot be used; the SDK would refuse all tools for it."""
    try:
        parse_server_result("tools/list", version, page | {"tools": [tool]})
    except ValidationError as error:
        name = str(tool.get("name", "?")) if isinstance(tool, dict) else "?"
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc'][2:]))}: {first['msg']}"
        return {"name": name, "inputSchema": {"type": "object"}, "_meta": {_PROBLEM: problem}}
    hints = tool.get("annotations") or {}
    if not isinstance(hints.get("readOnlyHint"), bool):  # the SDK takes 1 and "true" for true
        hints.pop("readOnlyHint", None)
    return tool


def _describe(tool: types.Tool) -> ToolDescription:
    hints = tool.annotations or types.ToolAnnotations()
    annotations = hints.model_dump(by_alias=True, exclude_none=True)
    problem = str((tool.meta or {}).get(_PROBLEM, ""))
    description = tool.description or ""
    return ToolDescription(tool.name, description, tool.input_schema, annotations, problem)


@asynccontextmanager
async def open_session(
    server: Server, workspace: Workspace, sandbox: Sandbox | None
) -> AsyncIterator[McpSession]:
    """Start the server within one task; raises ``ToolFailedError`` that says why it cannot."""
    failure = Failure()
    try:
        async with AsyncExitStack() as stack:
            try:
                if server.url is not None:
                    transport: Any = open_http(server, failure)
                else:
                    program = await asyncio.to_thread(build_program, server, workspace, sandbox)
                    transport = open_stdio(program, failure)
                session = McpSession(transport, server, failure)
                async with asyncio.timeout(server.timeout):
                    await session.open(stack)
            except TimeoutError:
                raise ToolFailedError(f"it was not ready within {server.timeout:g} s") from None
            except Exception as error:  # whatever it does, and the SDK makes of that
                raise ToolFailedError(_describe_error(error, failure.reason)) from error
            yield session
    except ExceptionGroup as error:  # the SDK's tasks wrap whatever is raised beside them
        raise ToolFailedError(_describe_error(error)) from error


def _describe_error(error: BaseException, reason: str = "") -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolFailedError):
        return str(error)
    return reason or to_one_line(f"{type(error).__name__}: {error}")


async def _believe(*_: object) -> None:
    """Take results as they are: checking a pattern in the server's schema could take for ever."""


def read_content(result: types.CallToolResult) -> list[JsonObject]:
    """One text block with all text, and the image blocks behind it."""
    blocks = list(_read_blocks(result.content))
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    images = [block for block in blocks if block["type"] == "image"]
    if result.structured_content is not None and not texts:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    if (more := len(images) - MAX_IMAGES) > 0:
        texts.append(f"[{name_count(more, 'more image')} left out]")
    if any("\ufffd" in text for text in texts):
        texts.append("[what is no character is shown as \ufffd]")
    return [*([_say("\n\n".join(texts))] if texts else []), *images[:MAX_IMAGES]]


def _read_blocks(content: Iterable[types.ContentBlock]) -> Iterator[JsonObject]:
    for block in content:
        match block:
            case types.TextContent():
                yield _say(block.text)
            case types.ImageContent():
                yield _read_image(block.data, block.mime_type, "image")
            case types.AudioContent():
                yield _say(f"[audio, {block.mime_type}: left out]")
            case types.ResourceLink():
                yield _say(f"[resource {block.name!r}: {block.uri}] {block.description or ''}")
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                yield _say(f"[resource {resource.uri}]\n{resource.text}")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                kind = resource.mime_type or "of no kind"
                yield _read_image(resource.blob, kind, f"resource {resource.uri}")


def _read_image(data: str, kind: str, name: str) -> JsonObject:
    """The image, or words where it is plainly none. What a provider refuses goes later."""
    try:
        image = base64.b64decode(data, validate=True)
    except binascii.Error:
        return _say(f"[{name}, {kind}: left out, as it is not base64]")
    if kind not in IMAGES or not image.startswith(IMAGES[kind]):
        return _say(f"[{name}, {kind}, {len(image)} bytes: left out]")
    if len(image) > MAX_IMAGE_BYTES:
        return _say(f"[{name}, {kind}, {len(image)} bytes: left out, as it is too large]")
    return {"type": "image", "base64": data, "mime_type": kind}


def _say(text: str) -> JsonObject:
    return {"type": "text", "text": text}
