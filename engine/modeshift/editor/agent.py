"""``EditorAgent``: the methods of the Agent Client Protocol."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from acp import RequestError, schema

from modeshift.agent import open_agent
from modeshift.configuration.loading import AgentCache
from modeshift.configuration.settings import load_settings
from modeshift.editor.files import McpServer
from modeshift.editor.session import EditorSession
from modeshift.editor.store import Record, Sessions
from modeshift.editor.transport import Editor
from modeshift.editor.turn import PromptBlock
from modeshift.models.loading import load_model
from modeshift.modes.errors import ConfigurationError, InvalidInputError

NOT_FOUND = -32002
Servers = Sequence[McpServer] | None
"""The MCP servers that the editor has for a session."""


@asynccontextmanager
async def connect(editor: Editor) -> AsyncIterator["EditorAgent"]:
    """The agent with the settings as they are now, until the client is gone.

    Raises ``UserError``.
    """
    settings = await asyncio.to_thread(load_settings)
    async with AsyncExitStack() as stack:
        try:
            agents = await stack.enter_async_context(open_agent(settings, file=settings.sessions))
            assert agents.database is not None, "of this process"
            sessions = Sessions.open(settings.sessions, agents.database)
            store = await stack.enter_async_context(sessions)
        except OSError as error:
            raise ConfigurationError(f"SESSIONS={str(settings.sessions)!r}: {error}") from error
        agent = EditorAgent(editor, agents.cache, store)
        stack.push_async_callback(agent.leave)
        yield agent


@dataclass(frozen=True)
class EditorAgent:
    """Serves one connection. The SDK names the methods; they raise ``UserError``."""

    editor: Editor
    agents: AgentCache
    store: Sessions
    _sessions: dict[str, EditorSession] = field(default_factory=dict, init=False)
    """All sessions that were ever open: a closed one may still be ending its turn."""

    async def authenticate(self, **_: object) -> schema.AuthenticateResponse:
        """Look for the key again, in ``.env`` too; an error where it is missing still."""
        settings = await asyncio.to_thread(load_settings)
        await asyncio.to_thread(load_model, settings.model)
        return schema.AuthenticateResponse()

    async def new_session(
        self, cwd: str, mcp_servers: Servers = None, **_: object
    ) -> schema.NewSessionResponse:
        """Begin a session in the folder ``cwd``."""
        record = Record(str(uuid4()), str(_resolve_folder(cwd)))
        session = await self._open(record, cwd, mcp_servers)
        return schema.NewSessionResponse(session_id=session.id, **session.describe())

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: object
    ) -> schema.LoadSessionResponse:
        """Reopen a session and send its history."""
        session = await self._open(await self._find_record(cwd, session_id), cwd, mcp_servers)
        await session.replay()
        return schema.LoadSessionResponse(**session.describe(is_replayed=True))

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: object
    ) -> schema.ResumeSessionResponse:
        """Reopen a session whose history the client has."""
        session = await self._open(await self._find_record(cwd, session_id), cwd, mcp_servers)
        return schema.ResumeSessionResponse(**session.describe())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: object
    ) -> schema.ListSessionsResponse:
        """List the sessions, latest first, all on one page."""
        if cursor is not None:
            raise InvalidInputError(f"cursor {cursor[:100]!r} did not come from this agent")
        folder = None if cwd is None else str(_resolve_folder(cwd))
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=row.id, cwd=cwd or row.cwd, title=row.title, updated_at=row.updated
                )
                for row in await self.store.list_all(folder)
            ]
        )

    async def close_session(self, session_id: str, **_: object) -> schema.CloseSessionResponse:
        """Cancel what the session does; it can be reopened."""
        await self._find(session_id).close()
        return schema.CloseSessionResponse()

    async def delete_session(self, session_id: str) -> None:
        """Cancel what a session does, and delete it with its thread, unless it is gone already."""
        if await self.store.find(session_id) is None:
            return
        with self.store.claim(session_id):
            if session_id in self._sessions:
                await self._sessions.pop(session_id).close()
            await self.agents.delete_thread(session_id)
            await self.store.delete(session_id)

    async def fork_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: object
    ) -> schema.ForkSessionResponse:
        """Copy a session as it is stored, for another conversation from here on."""
        record = await self._find_record(cwd, session_id)
        copy = replace(record, id=str(uuid4()), updated="")
        await self.agents.copy_thread(session_id, copy.id)
        session = await self._open(copy, cwd, mcp_servers)
        return schema.ForkSessionResponse(session_id=session.id, **session.describe())

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: object
    ) -> schema.SetSessionModeResponse:
        """Take the user's choice of a mode."""
        await self.set_config_option("mode", session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: object
    ) -> schema.SetSessionConfigOptionResponse:
        """Take the user's choice of a mode, a model or the approvals."""
        options = await self._find(session_id).choose(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=options.config_options())

    async def prompt(
        self, prompt: Sequence[PromptBlock], session_id: str, **_: object
    ) -> schema.PromptResponse:
        """Run a turn to its end."""
        return schema.PromptResponse(stop_reason=await self._find(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **_: object) -> None:
        """Cancel the turn that is going on, and those behind it."""
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def leave(self) -> None:
        """End everything because the client is gone."""
        await asyncio.gather(*(session.leave() for session in self._sessions.values()))

    async def _open(self, record: Record, cwd: str, mcp_servers: Servers) -> EditorSession:
        if record.id not in self._sessions:
            self._sessions[record.id] = EditorSession(self.editor, record, self.agents, self.store)
        session = self._sessions[record.id]
        await session.open(Path(cwd), mcp_servers or ())
        return session

    async def _find_record(self, cwd: str, session_id: str) -> Record:
        folder = _resolve_folder(cwd)
        record = await self.store.find(session_id)
        if record is None:
            raise RequestError(NOT_FOUND, f"there is no session {session_id[:100]!r}")
        if Path(record.cwd) != folder:
            raise InvalidInputError(
                f"the session belongs to the folder {record.cwd!r}, not to {cwd!r}"
            )
        return record

    def _find(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None or not session.is_open:
            raise RequestError(
                NOT_FOUND, f"no session {session_id[:100]!r} is open here; load or resume it first"
            )
        return session


def _resolve_folder(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or "\0" in cwd:
        raise InvalidInputError(f"cwd {cwd[:300]!r} is not an absolute path")
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise InvalidInputError(f"cwd {cwd[:300]!r}: {error}") from error
