"""``EditorAgent``: the methods of the Agent Client Protocol."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.interfaces import Client

from doors.editor.content import PromptBlock
from doors.editor.mcp_servers import McpServer, take_servers
from doors.editor.session import Session
from doors.editor.store import Record, Sessions
from doors.editor.transport import INVALID_PARAMS, PipeTransport
from graph.configuration.cache import AgentCache
from graph.configuration.environment import load_settings
from graph.models.loading import load_model
from modes.errors import InvalidInputError, MissingKeyError, UserError

AUTH_REQUIRED, NOT_FOUND = -32000, -32002
AUTH_METHOD = schema.AuthMethodAgent(
    id="key",
    name="The provider's key",
    description="Set the key that MODEL needs in .env in Modeshift's folder, or in the editor's "
    "settings for this agent.",
)
Servers = Sequence[McpServer] | None
"""The MCP servers that the editor has for a session."""


class EditorAgent:
    """One per connection. The SDK finds the methods by their names."""

    def __init__(
        self, agents: AgentCache, store: Sessions, transport: PipeTransport | None = None
    ) -> None:
        """``transport`` is what takes questions back on the wire."""
        self._agents = agents
        self._transport = transport
        self._store = store
        self._sessions: dict[str, Session] = {}
        """All that were ever open: a closed one may still be ending its turn."""
        self._files = schema.FileSystemCapabilities()
        self._client: Client

    def on_connect(self, client: Client) -> None:
        """Take the client, which gets updates and questions."""
        transport = self._transport
        self._client = client if transport is None else cast(Client, _Asking(client, transport))

    async def initialize(
        self, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Offer version 1 of the protocol, whatever the client asks for."""
        if client_capabilities is not None and client_capabilities.fs is not None:
            self._files = client_capabilities.fs
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(
                name="modeshift", title="Modeshift", version=version("modeshift")
            ),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[AUTH_METHOD],
        )

    async def authenticate(self, **_: Any) -> schema.AuthenticateResponse:
        """Look for the key again, in ``.env`` too; an error where it is missing still."""
        with _refuse_user_errors():
            settings = await asyncio.to_thread(load_settings)
            await asyncio.to_thread(load_model, settings.model)
        return schema.AuthenticateResponse()

    async def new_session(
        self, cwd: str, mcp_servers: Servers = None, **_: Any
    ) -> schema.NewSessionResponse:
        """Begin a session in the folder ``cwd``."""
        with _refuse_user_errors():
            session = self._create(Record(str(uuid4()), str(_resolve_folder(cwd))))
            await session.open(Path(cwd), take_servers(mcp_servers or ()))
            await session.store()
        self._sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id, **session.describe())

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """Reopen a session and send its history."""
        session = await self._reopen(cwd, session_id, mcp_servers)
        await session.replay()
        return schema.LoadSessionResponse(**session.describe())

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        """Reopen a session whose history the client has."""
        session = await self._reopen(cwd, session_id, mcp_servers)
        return schema.ResumeSessionResponse(**session.describe())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        """List the sessions, latest first, one page at a time."""
        with _refuse_user_errors():
            folder = None if cwd is None else str(_resolve_folder(cwd))
            records, next_cursor = await self._store.list_page(folder, cursor)
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=one.id, cwd=cwd or one.cwd, title=one.title, updated_at=one.updated
                )
                for one in records
            ],
            next_cursor=next_cursor,
        )

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """Cancel what the session does; it can be reopened."""
        await self._find(session_id).close()
        return schema.CloseSessionResponse()

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Take the user's choice of a mode."""
        await self.set_config_option("mode", session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Take the user's choice of a mode, a model or the approvals."""
        session = self._find(session_id)
        with _refuse_user_errors():
            options = await session.choose(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=options.config_options())

    async def prompt(
        self, prompt: Sequence[PromptBlock], session_id: str, **_: Any
    ) -> schema.PromptResponse:
        """Run a turn to its end."""
        session = self._find(session_id)
        with _refuse_user_errors():
            return schema.PromptResponse(stop_reason=await session.prompt(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the turn that is going on, and those behind it."""
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def leave(self) -> None:
        """End everything because the client is gone."""
        await asyncio.gather(*(session.leave() for session in self._sessions.values()))

    def _create(self, record: Record) -> Session:
        return Session(self._client, record, self._agents, self._store, self._files)

    async def _reopen(self, cwd: str, session_id: str, mcp_servers: Servers) -> Session:
        with _refuse_user_errors():
            folder = _resolve_folder(cwd)
            session = self._sessions.get(session_id)
            if session is None:
                record = await self._store.find(session_id)
                if record is None:
                    raise RequestError(NOT_FOUND, f"there is no session {session_id[:100]!r}")
                session = self._create(record)
            if session.cwd != folder:
                raise InvalidInputError(
                    f"the session belongs to the folder {str(session.cwd)!r}, not to {cwd!r}"
                )
            session = self._sessions.setdefault(session_id, session)
            await session.open(Path(cwd), take_servers(mcp_servers or ()))
        return session

    def _find(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None or not session.is_open:
            raise RequestError(
                NOT_FOUND, f"no session {session_id[:100]!r} is open here; load or resume it first"
            )
        return session


class _Asking:
    """The client; a question whose asking is cancelled is taken back on the wire."""

    def __init__(self, client: Client, transport: PipeTransport) -> None:
        self._client = client
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def request_permission(self, **given: Any) -> schema.RequestPermissionResponse:
        try:
            return await self._client.request_permission(**given)
        except asyncio.CancelledError:
            await self._transport.withdraw(given["tool_call"].tool_call_id)
            raise


@contextmanager
def _refuse_user_errors() -> Iterator[None]:
    """Answer the request with what is wrong with it, in words."""
    try:
        yield
    except MissingKeyError as error:
        methods = [AUTH_METHOD.model_dump(by_alias=True, exclude_none=True)]
        raise RequestError(AUTH_REQUIRED, str(error), {"authMethods": methods}) from error
    except UserError as error:
        raise RequestError(INVALID_PARAMS, str(error)) from error


def _resolve_folder(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or "\0" in cwd:
        raise InvalidInputError(f"cwd {cwd[:300]!r} is not an absolute path")
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise InvalidInputError(f"cwd {cwd[:300]!r}: {error}") from error
