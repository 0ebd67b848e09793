"""An editor: the SDK's client side, on the real process and its pipes."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from acp import Client, RequestError
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    NewSessionResponse,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
    WriteTextFileResponse,
)

from graph.settings import Settings
from tests.doors.editor.process import AgentProcess, agent_process
from tests.doors.editor.schema import check
from tests.harness.modes import MODES

Answer = Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[str | None]]


def choosing(*ids: str) -> Answer:
    """The options to choose, one after another; the last one from then on."""
    left = list(ids)

    async def answer(tool_call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


async def never(tool_call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
    """Toad, say, when the user has cancelled."""
    await asyncio.Event().wait()
    return None


async def dismiss(tool_call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
    """The dialog is closed."""
    return None


class Editor:
    """What the client side of the protocol is called with, and what it saw."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, ToolCallUpdate, list[PermissionOption]]] = []
        self.updates: list[tuple[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.buffers: dict[str, str] = {}
        """Unsaved text, by path."""
        self.reads: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        self.has_news = asyncio.Event()
        self.agent: ClientSideConnection
        self.process: AgentProcess
        self.log: Path

    def on_connect(self, conn: Any) -> None:
        pass

    def observe(self, event: StreamEvent) -> None:
        side = "agent" if event.direction is StreamDirection.INCOMING else "editor"
        message = dict(event.message)
        if "method" in message and "id" in message:
            message["id"] = f"{side} {message['id']}"
        elif "id" in message:
            other = "editor" if side == "agent" else "agent"
            message["id"] = f"{other} {message['id']}"
        self.messages.append(message)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self.has_news.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((session_id, tool_call, options))
        self.has_news.set()
        chosen = await self.answer(tool_call, options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=chosen)
        return RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        self.reads.append(path)
        self.has_news.set()
        if self.before_reading is not None:
            await self.before_reading()
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        try:
            return ReadTextFileResponse(content=Path(path).read_text())
        except OSError as error:
            raise RequestError.resource_not_found(path) from error

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.writes.append((path, content))
        self.buffers.pop(path, None)
        Path(path).write_text(content)
        return WriteTextFileResponse()

    # What a test does.

    async def new(self, cwd: Path) -> NewSessionResponse:
        return await self.agent.new_session(cwd=str(cwd), mcp_servers=[])

    async def say(self, session_id: str, text: str) -> str:
        """A prompt, to its end; the stop reason."""
        block = TextContentBlock(type="text", text=text)
        async with asyncio.timeout(30):
            return (await self.agent.prompt(prompt=[block], session_id=session_id)).stop_reason

    async def until(self, holds: Callable[[], Any], seconds: float = 20) -> None:
        """Wait for something to have been seen."""
        async with asyncio.timeout(seconds):
            while not holds():
                self.has_news.clear()
                await self.has_news.wait()

    def of(self, kind: str, session_id: str | None = None) -> list[Any]:
        """The updates of a kind, in their order."""
        return [
            update for id, update in self.updates
            if update.session_update == kind and session_id in (None, id)
        ]  # fmt: skip

    def said(self, session_id: str | None = None) -> str:
        """What the agent said, put together."""
        return "".join(one.content.text for one in self.of("agent_message_chunk", session_id))

    def statuses(self, id: str) -> list[str]:
        """Of a tool call, as they came."""
        calls = [u for _, u in self.updates if u.session_update.startswith("tool_call")]
        return [u.status for u in calls if u.tool_call_id == id and u.status is not None]


def environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """This process's, with the user's data in ``folder``."""
    names = {name.upper() for name in Settings.model_fields}
    kept = {k: v for k, v in os.environ.items() if k not in names}
    (folder / "home").mkdir(exist_ok=True)
    return {
        **kept,
        "SESSIONS": str(folder / "sessions.sqlite"),
        "CHECKPOINTS": str(folder / "checkpoints.sqlite"),
        "CONFIG_FOLDER": str(folder / "home"),
        "TRUST_FILE": str(folder / "trusted.json"),
        "MODES_FOLDER": str(MODES),
        "SANDBOX": "off",
        "MODEL": "offline",
        **settings,
    }


@asynccontextmanager
async def editing(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    answer: Answer = dismiss,
    files: FileSystemCapabilities | None = None,
) -> AsyncIterator[Editor]:
    """An editor with its agent, initialized; every message is held against the schema."""
    editor = Editor(answer)
    editor.log = folder / "log.txt"
    async with agent_process(environment(folder, settings or {}), editor.log) as process:
        editor.process = process
        editor.agent = ClientSideConnection(
            cast("Client", editor),
            process.stdin,
            process.stdout,
            observers=[editor.observe],
            use_unstable_protocol=True,
        )
        try:
            capabilities = ClientCapabilities(fs=files or FileSystemCapabilities())
            await editor.agent.initialize(protocol_version=1, client_capabilities=capabilities)
            yield editor
        finally:
            await editor.agent.close()
    check(editor.messages)


SLEEP = "run echo begun; sleep 60; touch too-late"


async def begun(editor: Editor, workspace: Path, mode: str = "code") -> str:
    id = (await editor.new(workspace)).session_id
    await editor.agent.set_session_mode(session_id=id, mode_id=mode)
    return id


def has_begun(editor: Editor) -> bool:
    """Whether the command has printed."""
    shown = [one.content[0] for one in editor.of("tool_call_update") if one.content]
    return any(one.type == "content" and one.content.text.startswith("```\nbegun") for one in shown)


async def reopened(editor: Editor, workspace: Path, id: str, *, resume: bool = False) -> Any:
    method = editor.agent.resume_session if resume else editor.agent.load_session
    return await method(cwd=str(workspace), session_id=id, mcp_servers=[])
